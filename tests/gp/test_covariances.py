"""Covariances and their state-space forms against the authors' numbers, against each other, and their derivatives."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.linalg import expm

from gaussfold.gp import (
    Brownian,
    Constant,
    Cosine,
    Covariance,
    GivenStateSpace,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Matern72,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
    White,
)
from gaussfold.gp.covariances import from_config
from tests.shared import ORACLES, needs_oracles

RNG = np.random.default_rng(3)
PERIODIC = Periodic(1.7, 0.8, 1.9, order=6)
ORACLE = {
    "matern12": Matern12(1.7, 0.6),
    "matern32": Matern32(1.7, 0.6),
    "matern52": Matern52(1.7, 0.6),
    "matern72": Matern72(1.7, 0.6),
    "cosine": Cosine(2.3),
    "periodic": PERIODIC,
    "quasiperiodic_matern12": Matern12(1.0, 2.1) * PERIODIC,
    "quasiperiodic_matern32": Matern32(1.0, 2.1) * PERIODIC,
    "subband_matern12": Matern12(1.7, 0.6) * Cosine(2.3),
    "subband_matern32": Matern32(1.7, 0.6) * Cosine(2.3),
    "subband_matern52": Matern52(1.7, 0.6) * Cosine(2.3),
    "sum_m32_m52": Matern32(1.7, 0.6) + Matern52(0.4, 2.2),
}


@needs_oracles
@pytest.mark.parametrize("name", ORACLE)
def test_state_space_is_the_authors(name):
    numbers = np.load(ORACLES / "bayesnewton" / "kernels_statespace.npz")
    covariance, dt, r = ORACLE[name], numbers["dts"], numbers["r"]
    space = covariance.state_space()
    A = space.transition(dt)
    if name != "quasiperiodic_matern32":  # the authors' F, P there do not solve their own Lyapunov equation
        np.testing.assert_allclose(space.feedback, numbers[f"{name}__F"], rtol=1e-8, atol=1e-12)
        if f"{name}__L" in numbers.files:
            L, Qc = numbers[f"{name}__L"], numbers[f"{name}__Qc"]
            Qc = np.diag(Qc) if Qc.ndim == 1 else Qc
            want = L @ Qc @ L.T
            np.testing.assert_allclose(space.diffusion, want, rtol=1e-8, atol=1e-10 * np.abs(want).max() + 1e-12)
        np.testing.assert_allclose(A, numbers[f"{name}__A"], rtol=1e-8, atol=1e-12)
        P = numbers[f"{name}__Pinf"]
        np.testing.assert_allclose(space.covariance, P, rtol=1e-8, atol=1e-10 * np.abs(P).max())
        np.testing.assert_allclose(space.noise(dt, A), numbers[f"{name}__Q"], rtol=1e-8, atol=1e-10 * np.abs(P).max())
        np.testing.assert_allclose(space.measurement[None], numbers[f"{name}__H"])
    h = space.measurement
    line = h @ space.transition(r) @ space.covariance @ h
    np.testing.assert_allclose(line, numbers[f"{name}__k_of_r"][:, 0, 0], rtol=1e-8, atol=1e-10)
    if f"{name}__K_dense" in numbers.files:
        np.testing.assert_allclose(covariance(r[:, None]), numbers[f"{name}__K_dense"], rtol=1e-8, atol=1e-12)


OSCILLATOR = GivenStateSpace([[0.0, 1.0], [-4.0, -0.4]], [1.0, 0.3], [[0.1, 0.0], [0.0, 1.0]], 1.7, 0.6)
MARKOV = {
    **{k: v for k, v in ORACLE.items() if "periodic" not in k},
    "constant": Constant(0.7),
    "white": White(0.7),
    "linear": Linear(0.7, centre=0.3),
    "brownian": Brownian(0.7, origin=-1.3),
    "given": OSCILLATOR,
    "walk": Matern32(1.3, 0.4) + Brownian(0.5, origin=-0.9) + OSCILLATOR,
    "sum": Matern32(1.3, 0.4) + Linear(0.5, centre=-1.0) + Constant(2.0) * Matern12(1.0, 3.0) + White(0.2),
}


@pytest.mark.parametrize("name", MARKOV)
def test_state_space_has_the_same_covariance(name):
    """From the moves alone: P at every input, then A forward; with a repeated input."""
    covariance = MARKOV[name]
    x = np.array([-0.4, 0.1, 0.1, 0.35, 1.7])
    space = covariance.state_space()
    dt = np.diff(x, prepend=x[0])
    A = space.transition(dt)
    Q = space.noise(dt, A)
    P, h = space.initial(x[0]), space.measurement
    K = np.empty((5, 5))
    for i in range(5):
        if i:
            P = A[i] @ P @ A[i].T + Q[i]
        move = np.eye(space.size)
        for j in range(i, 5):
            if j > i:
                move = A[j] @ move
            K[i, j] = K[j, i] = h @ move @ P @ h
    np.testing.assert_allclose(K, covariance(x[:, None]), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.diag(K), covariance.diagonal(x[:, None]), rtol=1e-10)


def test_expansions_converge():
    r = np.linspace(0.0, 3.0, 31)
    for make, orders, small in [
        (lambda n: SquaredExponential(1.7, 0.6, order=n), (2, 4, 6, 8), 2e-3),
        (lambda n: Periodic(1.7, 0.8, 1.9, order=n), (2, 4, 6, 10), 1e-8),
    ]:
        errors = []
        for n in orders:
            space = make(n).state_space()
            line = space.measurement @ space.transition(r) @ space.covariance @ space.measurement
            errors.append(np.abs(line - make(n)(np.zeros((1, 1)), r[:, None])[0]).max())
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < small


def test_transitions_are_matrix_exponentials():
    for covariance in (Matern72(1.3, 0.4), SquaredExponential(0.7, 2.0, order=6), PERIODIC, Matern32() * PERIODIC):
        space = covariance.state_space()
        for dt in (0.0, 0.013, 0.8):
            np.testing.assert_allclose(
                space.transition(np.array([dt]))[0], expm(dt * space.feedback), rtol=1e-9, atol=1e-9
            )


ALL = {
    **MARKOV,
    "ard": Matern52(1.3, (0.5, 2.0)) + SquaredExponential(0.4, (1.5, 0.3)) * Matern12(0.8, (0.9, 1.1)),
    "matern12-plane": Matern12(1.1, 0.4),
    "linear-plane": Linear(0.7) * Matern72(1.0, 1.3),
    "squared": SquaredExponential(1.3, 0.7),
    "rational": RationalQuadratic(1.3, (0.5, 2.0), 0.7),
    "rational-line": RationalQuadratic(1.3, 0.6, 2.4),
    "columns": Matern32(1.3, 0.7).on(1) * PERIODIC.on(0) + Matern12(0.4, (0.6, 1.1)).on(1, 0),
    "periodic": PERIODIC,
    "quasiperiodic": Matern32(1.0, 2.1) * PERIODIC,
}


PLANES = ("ard", "matern12-plane", "linear-plane", "rational", "columns")


def logs(covariance, i, h):
    values = covariance.parameters()
    name = list(values)[i]
    return covariance.replace({name: values[name] * np.exp(h)})


@pytest.mark.parametrize("name", ALL)
def test_derivatives(name):
    covariance = ALL[name]
    columns = 2 if name in PLANES else 1
    X, Z = RNG.normal(size=(6, columns)), RNG.normal(size=(4, columns))
    bar, square, line = RNG.normal(size=(6, 4)), RNG.normal(size=(6, 6)), RNG.normal(size=6)
    h = 1e-6
    for i, got in enumerate(zip(covariance.vjp(X, Z, bar), covariance.vjp(X, None, square), strict=True)):
        up, down = logs(covariance, i, h), logs(covariance, i, -h)
        want = np.vdot(bar, up(X, Z) - down(X, Z)) / (2 * h), np.vdot(square, up(X) - down(X)) / (2 * h)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)
        diagonal = line @ (up.diagonal(X) - down.diagonal(X)) / (2 * h)
        assert covariance.diagonal_vjp(X, line)[i] == pytest.approx(diagonal, rel=1e-6, abs=1e-8)
    value, vjp = covariance.with_vjp(X)
    np.testing.assert_allclose(value, covariance(X), rtol=1e-14)
    np.testing.assert_allclose(vjp(square), covariance.vjp(X, None, square), rtol=1e-12)
    slope = covariance.input_vjp(X, Z, bar)
    for i, j in np.ndindex(X.shape):
        up, down = X.copy(), X.copy()
        up[i, j] += h
        down[i, j] -= h
        want = np.vdot(bar, covariance(up, Z) - covariance(down, Z)) / (2 * h)
        assert slope[i, j] == pytest.approx(want, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", [k for k in ALL if k not in PLANES and "rational" not in k])
def test_state_space_derivatives(name):
    covariance = ALL[name]
    space, dt, start = covariance.state_space(), np.array([0.07, 0.9, 2.3]), 0.4
    bars = [RNG.normal(size=(3, space.size, space.size)) for _ in range(2)]
    bars[1] = bars[1] + bars[1].swapaxes(1, 2)
    bar_P = RNG.normal(size=(space.size, space.size))
    bar_P = bar_P + bar_P.T

    def value(c):
        s = c.state_space()
        A = s.transition(dt)
        return np.vdot(bars[0], A) + np.vdot(bars[1], s.noise(dt, A)) + np.vdot(bar_P, s.initial(start))

    got = space.vjp(space.adjoints(dt, space.transition(dt), bars[0].copy(), bars[1]), start, bar_P)
    for i, g in enumerate(got):
        want = (value(logs(covariance, i, 1e-6)) - value(logs(covariance, i, -1e-6))) / 2e-6
        assert g == pytest.approx(want, rel=1e-5, abs=1e-6)
    assert len(got) == len(covariance.parameters())


def test_names_values_and_files():
    covariance = Matern32(1.3, (0.5, 2.0)) + Constant(2.0) * Cosine(3.0)
    names = ["0.variance", "0.lengthscale[0]", "0.lengthscale[1]", "1.0.variance", "1.1.frequency"]
    assert list(covariance.parameters()) == names
    changed = covariance.replace({"0.lengthscale[1]": 7.0, "1.1.frequency": 4.0})
    assert changed == Matern32(1.3, (0.5, 7.0)) + Constant(2.0) * Cosine(4.0)
    assert from_config(covariance.config()) == covariance


def test_mistakes_are_named():
    with pytest.raises(ValueError, match=r"lengthscale=-1.0: Matern32 needs a finite number > 0"):
        Matern32(1.0, -1.0)
    with pytest.raises(ValueError, match=r"hyperparameter 'scale' is not one of 'variance', 'lengthscale'"):
        Matern32().replace({"scale": 1.0})
    with pytest.raises(ValueError, match=r"lengthscale has 2 entries and X has 1 columns"):
        Matern32(1.0, (1.0, 2.0))(np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"product with a linear covariance has no stationary state-space form"):
        (Linear() * Matern32()).state_space()
    with pytest.raises(ValueError, match=r"X has 2 columns: Periodic is defined on one"):
        Periodic()(np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"a state space has one input column, so give one number"):
        Matern32(1.0, (1.0, 2.0)).state_space()
    with pytest.raises(TypeError, match="is not a covariance"):
        Matern32() + 1.0


@dataclass(frozen=True)
class Own(Covariance):
    """A Matérn-5/2 that says its values, and nothing else."""

    variance: float = 1.0
    lengthscale: float | tuple[float, ...] = 1.0
    learned: ClassVar[tuple[str, ...]] = ("variance", "lengthscale")

    def __call__(self, X, Z=None):
        return Matern52(self.variance, self.lengthscale)(X, Z)


def test_a_covariance_that_says_its_values_only_is_differentiated():
    X, Z = RNG.normal(size=(5, 2)), RNG.normal(size=(4, 2))
    own, known = Own(1.3, (0.7, 2.1)), Matern52(1.3, (0.7, 2.1))
    bar, diagonal = RNG.normal(size=(5, 4)), RNG.normal(size=5)
    np.testing.assert_allclose(own.diagonal(X), known.diagonal(X))
    for mine, theirs in [
        (own.vjp(X, Z, bar), known.vjp(X, Z, bar)),
        (own.vjp(X, None, bar @ bar.T), known.vjp(X, None, bar @ bar.T)),
        (own.diagonal_vjp(X, diagonal), known.diagonal_vjp(X, diagonal)),
        (own.input_vjp(X, Z, bar), known.input_vjp(X, Z, bar)),
    ]:
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)


def test_a_state_space_in_steps_is_that_in_time():
    space = OSCILLATOR.state_space()
    A = space.transition(np.array([0.4]))
    Q = space.noise(np.array([0.4]), A)
    again = GivenStateSpace.from_steps(A[0], Q[0], space.measurement, 0.4)
    x = np.array([[0.0], [0.3], [1.1], [5.0]])
    np.testing.assert_allclose(again(x), OSCILLATOR(x), rtol=1e-7, atol=1e-9)
    with pytest.raises(ValueError, match="all must lie left of zero"):
        GivenStateSpace([[0.1]], [1.0], [[1.0]])
    with pytest.raises(ValueError, match=r"columns=\(2,\): X has 2 columns"):
        Matern32().on(2)(np.zeros((3, 2)))
