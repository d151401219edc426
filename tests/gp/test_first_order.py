"""First-order variational inference ends where natural gradients end, and its gradient is that of the energy."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.gp import FirstOrderVI, GaussianProcess, LinearMean, Matern32

X = np.linspace(0.0, 5.0, 14)


def _problem(name):
    rng = np.random.default_rng(3)
    if name == "noise":
        return [Matern32(1.3, 1.0)] * 2, lk.HeteroscedasticGaussian(), np.sin(X) + 0.3 * rng.normal(size=14)
    return Matern32(1.3, 1.0), lk.Poisson(), rng.poisson(np.exp(1.0 + np.sin(X))).astype(float)


@pytest.mark.parametrize("structure", ["dense", "markov"])
def test_it_ends_at_the_minimum(structure):
    """With a mean function, offsets, weights, a missing label and a weight of zero; from above.

    Its sites are positive, so that it shares a minimum with natural gradients where log p is concave.
    """
    kernels, likelihood, y = _problem("counts")
    y[4] = np.nan
    weights = np.linspace(0.0, 2.0, 14)
    extras = {"sample_weight": weights, "offset": np.linspace(-0.4, 0.4, 14)}
    options = {"structure": structure, "mean": LinearMean()}
    best = GaussianProcess(kernels, likelihood, "vi", **options).fit(X, y, **extras)
    slow = FirstOrderVI(GaussianProcess(kernels, likelihood, "vi", **options), X, y, **extras).run(400)
    first = slow.model.energy()
    slow.rate = 0.01
    gap = slow.run(300).model.energy() - best.energy()
    assert -1e-6 < gap < 1e-3
    assert slow.model.energy() <= first + 1e-6
    np.testing.assert_allclose(slow.model.predict_latent(X)[0], best.predict_latent(X)[0], atol=0.05)


def test_the_gradient_is_that_of_the_energy():
    """In site means and log factors, against differences of the energy at sites that have not settled."""
    kernels, likelihood, y = _problem("noise")
    slow = FirstOrderVI(GaussianProcess(kernels, likelihood, "vi"), X, y).run(7)
    caught = []
    slow._adam = lambda *gradients: caught.extend(gradients)
    slow.step()
    h = 1e-4
    for part, gradient in zip((slow._mean, slow._root), caught, strict=True):
        for at in ((3, 1), (9, 0)) if part.ndim == 2 else ((2, 0, 0), (5, 1, 0), (8, 1, 1)):
            ends = []
            for sign in (1.0, -1.0):
                part[at] += sign * h
                slow._put()
                ends.append(slow.model.energy())
                part[at] -= sign * h
            slow._put()
            assert gradient[at] == pytest.approx((ends[0] - ends[1]) / (2.0 * h), rel=1e-4, abs=1e-6)


def test_batches_and_rates_are_refused():
    model = GaussianProcess(Matern32(), "poisson", structure="sparse", inducing=3, batch_size=5)
    with pytest.raises(ValueError, match="batch_size=5: FirstOrderVI moves the sites of all rows"):
        FirstOrderVI(model, X, np.ones(14))
    with pytest.raises(ValueError, match="rate=0"):
        FirstOrderVI(GaussianProcess(Matern32(), "poisson"), X, np.ones(14), rate=0)
