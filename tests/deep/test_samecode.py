"""What is compiled for a function serves another that does the same, and no other."""

import functools
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from gaussfold.deep.samecode import canonical

FACTOR = 2.0


def scaled(by):
    return lambda x: by * x


def through(x):
    return scaled(3.0)(x)


def test_the_same_code_is_one_function():
    first = canonical(lambda x: FACTOR * jnp.tanh(x))
    second = canonical(lambda x: FACTOR * jnp.tanh(x))
    assert first is second
    assert canonical(scaled(1.5)) is canonical(scaled(1.5))
    assert canonical(lambda x: through(x)) is canonical(lambda x: through(x))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: x + 1, lambda x: x + 1.0),
        (lambda x: x + 1, lambda x: x + True),
        (lambda x: x + 0.0, lambda x: x + -0.0),
        (lambda x, y=1: x + y, lambda x, y=2: x + y),
        (lambda x, *, y=1: x + y, lambda x, *, y=2: x + y),
        (scaled(1.0), scaled(2.0)),
        (scaled(1), scaled(1.0)),
        (lambda x: jnp.tanh(x), lambda x: np.tanh(x)),
        (lambda x: [y * 2 for y in x], lambda x: [y * 3 for y in x]),
    ],
)
def test_other_code_is_another_function(one, other):
    assert canonical(one) is not canonical(other)


def test_what_can_change_is_never_taken_to_be_the_same():
    box = [1.0]
    first, second = (canonical(lambda x: x * box[0]) for _ in range(2))
    assert first is not second
    array = np.ones(2)
    first, second = (canonical(lambda x: x * array) for _ in range(2))
    assert first is not second


def test_a_global_that_was_given_anew_is_seen(monkeypatch):
    before = canonical(lambda x: FACTOR * x)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    after = canonical(lambda x: FACTOR * x)
    assert before is not after


def test_what_is_no_plain_function_is_left_alone():
    for function in (functools.partial(scaled, 1.0), jax.jit(through), np.sin):
        assert canonical(function) is function


def test_a_second_lambda_is_not_compiled_again():
    X = np.linspace(-1.0, 1.0, 40, dtype=np.float32)[:, None]
    traced = []

    def fit(seed):
        function = gf.deep.log_likelihood(lambda w, X: note(X @ w), gf.likelihoods.Gaussian(0.5))
        return gf.deep.VIFA(function, np.zeros(1, np.float32), seed=seed).fit(X, X[:, 0], steps=5)

    def note(x):
        traced.append(1)
        return x

    fit(0)
    counts = len(traced)
    fit(1)
    assert len(traced) > counts, "a closure over a list is compiled anew"
    programs = []
    for seed in (0, 1):
        function = gf.deep.log_likelihood(lambda w, X: jnp.sin(X @ w), gf.likelihoods.Gaussian(0.5))
        programs.append(gf.deep.VIFA(function, np.zeros(1, np.float32), seed=seed).program())
    assert programs[0] == programs[1]
    assert hash(programs[0]) == hash(programs[1])


def test_compiled_code_is_kept_between_processes(tmp_path):
    script = (
        "import sys, numpy as np, gaussfold as gf\n"
        "gf.deep.keep_compiled(sys.argv[1])\n"
        "function = gf.deep.log_likelihood(lambda w, X: X @ w, gf.likelihoods.Gaussian(0.5))\n"
        "X = np.ones((20, 1), np.float32)\n"
        "print(gf.deep.VIFA(function, np.zeros(1, np.float32)).fit(X, X[:, 0], steps=9).belief.mean[0])\n"
    )
    found, sizes = [], []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script, str(tmp_path)], capture_output=True, check=True
        )
        found.append(run.stdout)
        sizes.append(sum(name.endswith("-cache") for name in os.listdir(tmp_path)))
    assert found[0] == found[1]
    assert sizes[0] == sizes[1] > 0  # the second process compiled nothing new
