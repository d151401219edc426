"""The deterministic trajectories of the thesis's own program, update by update."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from gaussfold.deep import training
from tests.shared import ORACLES, needs_oracles


def straight(params, X):
    return X @ params


def with_bias(params, X):
    return X @ params[:-1] + params[-1]


class Replay:
    """A program whose random numbers are given."""

    def __init__(self, program):
        self.program = program

    def draw(self, hyper, step):
        return hyper["h"][step], hyper["z"][step]

    def step(self, *arguments):
        return self.program.step(*arguments)


@needs_oracles
@pytest.mark.parametrize(
    ("name", "digits"), [("syn2d", "f64"), ("yacht", "f64"), ("bostonHousing", "f64"), ("yacht", "f32")]
)
def test_trajectories(name, digits):
    """100 updates of Algorithm 3 with the authors' batches, draws and first factors."""
    with np.load(ORACLES / "swafa" / f"vifa_trajectory_{name}.npz") as file:
        oracle = dict(file)
    dtype, tolerance = (np.float64, 1e-9) if digits == "f64" else (np.float32, 1e-4)
    bias, count, M, L = bool(oracle["bias"]), 100, int(oracle["M"]), int(oracle["L"])
    with jax.enable_x64(digits == "f64"):
        function = gf.deep.log_likelihood(
            with_bias if bias else straight, gf.likelihoods.Gaussian(float(oracle["beta"]) ** -0.5)
        )
        method = gf.deep.VIFA(
            function,
            jnp.zeros(len(oracle["F0"]), dtype),
            rank=int(oracle["K"]),
            prior_precision=float(oracle["alpha"]),
            n_samples=L,
            share_batch=False,
            optimizer="sgd",
            learning_rate=dict(zip(("mean", "factors", "log_psi"), oracle["lrs"].tolist(), strict=True)),
            max_grad_norm=float(oracle["max_grad_norm"]),
            init_std=1.0,
            average=0.0,
            temperature=1.0,
            init_factors=oracle["F0"],
        )
        data = jnp.asarray(oracle["X"], dtype), jnp.asarray(oracle["y"], dtype)
        draws = {key: jnp.asarray(oracle[key], dtype).reshape(count, L, -1) for key in ("h", "z")}
        hyper = method.hyper(len(oracle["y"]), M) | draws
        rows = oracle["batch_idx"].astype(np.int32).reshape(count, 1, L, M)
        program, state = Replay(method.program()), training.start(method.initial())
        for update in range(count):
            state, _ = training.run_chunk(program, False, state, training.Given(hyper, data, 1), rows[update], 1)
            found = state["inner"]["variables"]
            for ours, theirs in (("mean", "c"), ("factors", "F"), ("log_psi", "psi")):
                value = np.exp(found[ours]) if ours == "log_psi" else np.asarray(found[ours]).T
                np.testing.assert_allclose(value, oracle[f"{digits}_{theirs}"][update], rtol=tolerance, atol=tolerance)
    assert int(state["skipped"]) == 0
