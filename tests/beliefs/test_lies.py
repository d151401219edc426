"""Records made by hand, with arrays that do not fit together, given straight to a belief."""

from __future__ import annotations

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.folding import recipe_of
from gaussfold.observations import Observations

BELIEFS = {
    "dense": lambda: gf.DenseGaussian.isotropic(5),
    "lowrank": lambda: gf.LowRankGaussian.isotropic(5, 2),
    "diagonal": lambda: gf.DiagonalGaussian.isotropic(5),
    "mixture": lambda: gf.DiagonalMixture.isotropic(5),
}


@pytest.mark.parametrize("name", BELIEFS)
@pytest.mark.parametrize(("labels", "weights"), [(3000, 3000), (3000, 5), (5, 3000), (2, 5)])
def test_more_labels_or_weights_than_rows_are_refused(name, labels, weights):
    belief = BELIEFS[name]()
    program = recipe_of(gf.likelihoods.Bernoulli("logit"), "newton", "posterior").program
    with pytest.raises(ValueError, match=r"y|sample_weight"):
        belief.absorb_stream(Observations(np.eye(5), np.ones(labels), np.ones(weights)), program)
    np.testing.assert_array_equal(belief.mean, BELIEFS[name]().mean)


@pytest.mark.parametrize("name", BELIEFS)
def test_loose_arrays_are_refused(name):
    belief = BELIEFS[name]()
    program = recipe_of(gf.likelihoods.Bernoulli("logit"), "newton", "posterior").program
    for given in ((np.eye(5), np.ones(5), np.ones(5), program), (np.eye(5), program), (None, program)):
        with pytest.raises(ValueError, match="Observations"):
            belief.absorb_stream(*given)
    np.testing.assert_array_equal(belief.mean, BELIEFS[name]().mean)
