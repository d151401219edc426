"""Six threads fold six models, and a child goes on after a fork: whatever the belief, bit for bit as alone."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import gaussfold as gf

LOGIT = gf.likelihoods.Bernoulli("logit")
DIM = 12
MODELS = {
    "full": lambda: gf.DenseGaussian.isotropic(DIM, 0.7),
    "low rank": lambda: gf.LowRankGaussian.isotropic(DIM, 3, 0.7),
    "low rank in blocks": lambda: gf.LowRankGaussian.isotropic(DIM, 3, 0.7, block_size=8),
    "diagonal": lambda: gf.DiagonalGaussian.isotropic(DIM, 0.7),
    "mixture": lambda: gf.DiagonalMixture.isotropic(DIM),
    "classifier": lambda: gf.StreamingClassifier(),
    "low-rank regressor": lambda: gf.StreamingRegressor(covariance="lowrank", rank=2),
    "counts": lambda: gf.StreamingPoissonRegressor(covariance="diagonal"),
}


def learned(name: str, seed: int = 3) -> dict[str, bytes]:
    """The state of a model after some dense and some sparse rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, DIM)) * (rng.random((150, DIM)) < 0.4)
    y = rng.integers(0, 2, 150).astype(float)
    model = MODELS[name]()
    for start, rows in ((0, X[:70]), (70, csr_array(X[70:]))):
        labels = y[start : start + rows.shape[0]]
        if isinstance(model, gf.StreamingClassifier):
            model.partial_fit(rows, labels, classes=[0.0, 1.0])
        elif hasattr(model, "partial_fit"):
            model.partial_fit(rows, labels)
        else:
            gf.fold(model, LOGIT, rows, labels, rule="newton")
    return {key: np.asarray(array).tobytes() for key, array in model.state().items()}


@pytest.mark.parametrize("name", list(MODELS))
def test_six_threads_fold_six_models_of_a_kind(name):
    alone = [learned(name, seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            for one, other in zip(alone, pool.map(lambda seed: learned(name, seed), range(6)), strict=True):
                assert one == other


def test_six_threads_fold_models_of_all_kinds():
    alone = [learned(name) for name in MODELS]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            for one, other in zip(alone, pool.map(learned, MODELS), strict=True):
                assert one == other


FORK = """
import os
from tests.test_threads import MODELS, learned

before = {name: learned(name) for name in MODELS}
for _ in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0 if all(learned(name) == before[name] for name in MODELS) else 1)
    assert os.waitpid(child, 0)[1] == 0
assert all(learned(name) == before[name] for name in MODELS)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
def test_fork_after_use_of_every_belief():
    done = subprocess.run(
        [sys.executable, "-c", FORK],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"GAUSSFOLD_QUIET": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
