"""Bad input: errors that name what, where and what to do, before anything changes."""

import jax.numpy as jnp
import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.expectations.cubature import QuasiRandom
from gaussfold.gp import Covariance, GaussianProcess, Linear, Matern32

X = np.linspace(0.0, 1.0, 6)
Y = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])


class Own(Covariance):
    """No state-space form."""

    def __call__(self, X, Z=None):
        return np.exp(-np.abs(X - (X if Z is None else Z).T))


class Broken(lk.ScalarLikelihood):
    log_concave = True

    def log_prob(self, y, f):
        return np.where(np.asarray(y) == 1.0, np.nan, -0.5 * np.asarray(f) ** 2)

    def derivatives(self, y, f):
        return np.where(np.asarray(y) == 1.0, np.nan, -np.asarray(f)), -1.0 + 0.0 * np.asarray(f)


def gp(structure="dense", likelihood=None, covariance=None, **options):
    return GaussianProcess(
        Matern32() if covariance is None else covariance,
        lk.Bernoulli() if likelihood is None else likelihood,
        structure=structure,
        **options,
    )


CASES = {
    "no-state-space": (lambda: gp("markov", covariance=Own()), "no state-space form; the Markov structure takes"),
    "linear-product": (lambda: gp("markov", covariance=Linear() * Matern32()), "product with a linear covariance"),
    "two-columns": (
        lambda: gp("markov").fit(np.zeros((6, 2)), Y),
        r"X has 2 columns: structure='markov' needs exactly one .*use a SpaceTime covariance for time and places",
    ),
    "no-rows": (lambda: gp().fit(np.zeros((0, 1)), []), r"X has no rows \(shape \(0, 1\)\); at least one is needed"),
    "nan-input": (
        lambda: gp("markov").fit([0.0, np.nan, 1.0], [0, 1, 0]),
        r"X\[1, 0\] = nan: inputs must be finite; drop the row",
    ),
    "no-inducing": (lambda: gp("sparse", inducing=0).fit(X, Y), "inducing=0: the number of inducing inputs"),
    "empty-inducing": (lambda: gp("sparse", inducing=np.zeros((0, 1))).fit(X, Y), "inducing has no rows"),
    "wide-inducing": (lambda: gp("sparse", inducing=np.zeros((2, 3))).fit(X, Y), "inducing has 3 columns and X has 1"),
    "nan-likelihood": (
        lambda: gp(likelihood=Broken()).fit(X, Y),
        r"gradient of Broken is \[nan\] in row 1 \(Y = \[1.0\].*check the labels and the likelihood's log_prob there",
    ),
    "nan-likelihood-after-missing": (  # the row is the data's, not the observed ones'
        lambda: gp(likelihood=Broken()).fit(X, [np.nan, 0.0, np.nan, 0.0, 1.0, 0.0]),
        r"gradient of Broken is \[nan\] in row 4",
    ),
    "nan-custom": (
        lambda: gp(likelihood=lk.CustomLikelihood(lambda y, f: jnp.sqrt(f[0] - 1.0) * y[0])).fit(X, Y),
        r"gradient of CustomLikelihood is \[nan\] in row 0 .*check the labels and the likelihood's log_prob there",
    ),
    "label-outside-several": (
        lambda: gp(likelihood=lk.Softmax(3), covariance=[Matern32()] * 3).fit(X, [0, 1, 2, 3, 1, 0]),
        r"Y\[3, 0\] = 3.0: Softmax labels must be",
    ),
    "infinite-output": (
        lambda: gp(likelihood=lk.HeteroscedasticGaussian(), covariance=[Matern32()] * 2).fit(
            X, [0, 1, np.inf, 3, 1, 0]
        ),
        r"Y\[2, 0\] = inf: HeteroscedasticGaussian labels must be finite numbers.*drop or correct",
    ),
    "negative-inducing": (
        lambda: gp("sparse", inducing=-3).fit(X, Y),
        "inducing=-3: .* >= 1; or give the inputs",
    ),
    "nan-inducing": (lambda: gp("sparse", inducing=[[0.1], [np.nan]]).fit(X, Y), r"inducing\[1, 0\] = nan"),
    "label-outside": (
        lambda: gp().fit(X, [0, 1, 2, 0, 1, 0]),
        r"Y\[2\] = 2.0: Bernoulli labels must be",
    ),
    "label-outside-poisson": (
        lambda: gp(likelihood="poisson").fit(X, Y - 1.0),
        r"Y\[0\] = -1.0: Poisson labels must be",
    ),
    "label-shape": (lambda: gp().fit(X, np.zeros((6, 2))), r"Y has shape \(6, 2\).*need \(6, 1\)"),
    "label-words": (lambda: gp().fit(X, list("abcdef")), "Y is not numeric"),
    "structure": (lambda: gp("banded"), "structure='banded': allowed are 'dense', 'sparse', 'markov'"),
    "damping": (lambda: gp(damping=0.0), r"damping=0.0: a number in \(0, 1\] is needed"),
    "rule": (lambda: gp(rule="gibbs"), "rule='gibbs': allowed are"),
    "pair": (lambda: gp(rule="ep", curvature="gauss-newton"), "gauss-newton"),
    "covariance": (lambda: gp(covariance="rbf"), "covariance='rbf': give a covariance such as gaussfold.gp.Matern32"),
    "covariances": (
        lambda: gp(covariance=[Matern32()] * 3, likelihood=lk.HeteroscedasticGaussian()),
        "covariance is a list of 3: the likelihood has 2 latents",
    ),
    "batches": (lambda: gp(batch_size=3), "only structure='sparse' learns from batches"),
    "batch-memory": (
        lambda: gp("sparse", batch_size=3, curvature="quasi-newton").fit(X, Y),
        "curvature='quasi-newton' remembers every site",
    ),
    "label-complex": (lambda: gp().fit(X, Y * 1j), r"Y is not numeric \(complex numbers\)"),
    "label-huge": (
        lambda: gp(likelihood=lk.Gaussian(0.1)).fit(X, [0.0, 1e300, 0.0, 0.0, 1.0, 0.0]),
        "no posterior with a finite energy was found.*check the labels",
    ),
    "count-huge": (
        lambda: gp("markov", likelihood="poisson").fit(X, [0.0, 1e300, 0.0, 0.0, 1.0, 0.0]),
        "no posterior with a finite energy was found.*check the labels",
    ),
    "no-length": (lambda: Matern32(1.0, ()), r"lengthscale=\(\): Matern32 needs one number"),
    "hyperprior": (
        lambda: gp().fit(X, Y).learn_hyperparameters(priors={"covariance.variance": 3.0}),
        r"priors\['covariance.variance'\]=3.0: give a distribution",
    ),
    "limits": (
        lambda: gp().fit(X, Y).learn_hyperparameters(bounds={"covariance.variance": 3.0}),
        r"bounds\['covariance.variance'\]=3.0: give two positive numbers",
    ),
    "quasi-random-points": (
        lambda: gp(cubature=QuasiRandom(10**9)),
        "points=1000000000: QuasiRandom takes at most 1000000; a few thousand",
    ),
    "not-fitted": (lambda: gp().predict(X), r"has seen no data; call fit\(X, Y\) first"),
    "other-width": (lambda: gp().fit(X, Y).predict(np.zeros((2, 2))), "X has 2 columns; the model was fitted on 1"),
    "optimizer": (lambda: gp().fit(X, Y).learn_hyperparameters("sgd"), "optimizer='sgd': allowed is 'lbfgs'"),
    "fixed": (lambda: gp().fit(X, Y).learn_hyperparameters(fixed=["scale"]), "fixed: 'scale' is not one of"),
    "singular": (
        lambda: gp("sparse", covariance=Linear(), inducing=np.zeros((1, 1))).fit(X, Y),
        "covariance of the 1 inducing inputs is numerically singular",
    ),
}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_errors_say_what_and_what_to_do(name):
    action, message = CASES[name]
    with pytest.raises(ValueError, match=message):
        action()


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = gp("markov").fit(X, Y)
    before = model.predict(X)
    for bad in (lambda: model.fit(X, Y + 5.0), lambda: model.fit(np.zeros((6, 2)), Y), lambda: model.fit(X[:3], Y)):
        with pytest.raises(ValueError, match=r"."):
            bad()
        np.testing.assert_array_equal(model.predict(X), before)


def test_learning_that_fails_leaves_the_model_as_it_was():
    class Odd:
        """Refuses to say anything after a while."""

        calls = 0

        def log_density(self, log_value):
            self.calls += 1
            if self.calls > 3:
                raise RuntimeError("gone")
            return -(log_value**2), -2.0 * log_value

    model = gp().fit(X, Y)
    before, names = model.predict(X), model.parameters()
    with pytest.raises(RuntimeError, match="gone"):
        model.learn_hyperparameters(priors={"covariance.variance": Odd()})
    assert model.parameters() == names
    np.testing.assert_array_equal(model.predict(X), before)


def test_exact_curvature_reports_count_and_first_row_and_patches_nothing():
    """Two latents, inputs unsorted, missing rows: numbers of the sites as they stand, in the order of the data."""
    rng = np.random.default_rng(5)
    x = rng.permutation(np.linspace(0.0, 3.0, 12))
    y = np.sin(2.0 * x)
    y[:2], y[2], y[7] = np.nan, 3.0, -3.0
    model = GaussianProcess(
        [Matern32(1.0, 1.0)] * 2, lk.HeteroscedasticGaussian(), "newton", "exact", "markov", damping=0.2
    ).fit(x, y, iterations=1)
    before = model.marginals_
    model.resume(iterations=1)
    smallest = np.linalg.eigvalsh(model.sites_.precision)[:, 0]
    assert (model.result_.non_positive, model.result_.first_non_positive) == (int((smallest < 0.0).sum()), 2)
    assert model.result_.non_positive >= 2
    assert smallest[2] < -1e-3
    first = model.likelihood.derivatives(y[2:, None], np.zeros((10, 2)))[1]
    second = model.likelihood.derivatives(y[2:, None], before.mean[2:])[1]
    want = 0.8 * (0.8 * 0.01 * np.eye(2) - 0.2 * first) - 0.2 * second  # (9) twice, from 0.01 I, with nothing done to H
    np.testing.assert_allclose(model.sites_.precision[2:], want, rtol=1e-10, atol=1e-12)


def test_lost_positive_definiteness_is_told_not_patched():
    """Student-t noise, a wide prior and plain steps of exact curvature from far away: no posterior is left."""
    y = np.array([0.0, 30.0, -30.0, 30.0, -30.0, 0.0])
    model = GaussianProcess(Matern32(400.0, 0.05), lk.StudentT(3.0, 0.5), "newton", start_precision=0.0)
    with pytest.raises(ValueError, match=r"no positive definite posterior covariance.*gauss-newton"):
        model.fit(X, y, iterations=20)
    with pytest.raises(ValueError, match="has seen no data"):
        model.predict(X)  # the failed fit left nothing behind
