"""A fold that is refused leaves the belief as it was, to the last bit of what a file would hold."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import gaussfold as gf
from gaussfold.beliefs.diagonal import passes

BELIEFS = {
    "dense": lambda: gf.DenseGaussian.isotropic(4, 0.7),
    "lowrank": lambda: gf.LowRankGaussian.isotropic(4, 2, 0.7),
    "diagonal": lambda: gf.DiagonalGaussian.isotropic(4, 0.7),
    "joint": lambda: gf.DiagonalGaussian.isotropic(4, 0.7, coupling="joint"),
    "mixture": lambda: gf.DiagonalMixture.isotropic(4),
}
X = np.random.default_rng(5).normal(size=(6, 4))
Y = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
LOGIT = gf.likelihoods.Bernoulli()


def _bits(belief):
    return {name: array.tobytes() for name, array in belief.state().items()}


@pytest.mark.parametrize("moves", ["still", "forgets"])
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("name", BELIEFS)
def test_rows_out_of_range(name, learned, moves):
    belief = BELIEFS[name]()
    if learned:
        gf.fold(belief, LOGIT, X, Y, rule="newton")
    before, mean = _bits(belief), belief.mean.copy()
    dynamics = gf.dynamics.Forgetting(0.97, BELIEFS[name]()) if moves == "forgets" else None
    far = X.copy()
    far[4] = 1e200
    with pytest.raises(ValueError, match="nothing was learned"):
        gf.fold(belief, LOGIT, far, Y, rule="newton", dynamics=dynamics)
    assert _bits(belief) == before
    np.testing.assert_array_equal(belief.mean, mean)


@pytest.mark.parametrize("name", ["diagonal", "mixture"])
def test_no_memory_for_the_scores(name, monkeypatch):
    belief = BELIEFS[name]()
    gf.fold(belief, LOGIT, X, Y, rule="newton")
    before = _bits(belief)

    def failing(*_):
        raise MemoryError

    monkeypatch.setattr(passes, "score_rows", failing)
    with pytest.raises(MemoryError):
        gf.fold(belief, LOGIT, X, Y, rule="newton")
    assert _bits(belief) == before


@pytest.mark.parametrize("name", BELIEFS)
@pytest.mark.parametrize("n", [1, 3])
def test_labels_whose_squares_are_no_numbers(name, n):
    belief = BELIEFS[name]()
    before = _bits(belief)
    with pytest.raises(ValueError, match=r"y: row .* is -1e\+200; its square is no number"):
        gf.fold(belief, gf.likelihoods.Gaussian(0.6), X[:n], np.array([0.5, -0.3, -1e200])[-n:], rule="newton")
    assert _bits(belief) == before


@pytest.mark.parametrize("number", [1e308, -1e200])
def test_components_whose_distances_have_no_squares(number):
    state = gf.DiagonalMixture.isotropic(4).state()
    state["cells"][0, 0, 0] = number
    with pytest.raises(ValueError, match="means in cells"):
        gf.DiagonalMixture.from_state(state)


def test_more_rows_wait_than_a_block_holds():
    belief = gf.LowRankGaussian.isotropic(4, 2, 0.7, block_size=5)
    gf.fold(belief, LOGIT, X[:3], Y[:3])
    state = belief.state()
    state["options"][3] = 3.0
    with pytest.raises(ValueError, match="3 rows wait; fewer than a block of 3 can"):
        gf.LowRankGaussian.from_state(state)


@pytest.mark.parametrize("name", BELIEFS)
def test_blocks_that_lie_about_their_number(name):
    rows = sp.bsr_array(X, blocksize=(2, 2))
    rows.indptr = np.array([0, 2, 2**40, 6])
    with pytest.raises(ValueError, match="its parts do not fit together"):
        gf.fold(BELIEFS[name](), LOGIT, rows, Y, rule="newton")
    with pytest.raises(ValueError, match="its parts do not fit together"):
        BELIEFS[name]().marginal(rows)
