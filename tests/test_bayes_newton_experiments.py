"""The experiments of the Bayes-Newton paper, in small: the baseline, and the claims that a few iterations show."""

from pathlib import Path

import numpy as np
import pytest
from experiments.bayes_newton import links, methods, motorcycle, network

from gaussfold import likelihoods as lk
from gaussfold import rules
from gaussfold.gp import GaussianProcess, Matern32
from tests.shared import needs_data


def small(rule="vi", structure="markov"):
    rng = np.random.default_rng(4)
    X = np.sort(rng.uniform(0.0, 6.0, 25))
    y = (np.sin(X) + 0.3 * rng.standard_normal(25) > 0.0).astype(float)
    return GaussianProcess(Matern32(1.5, 1.0), lk.Bernoulli(), rule, structure=structure, verbose=False), X, y


def test_the_links_of_the_chart_are_of_first_order_or_exact():
    """Power ep to vi, vi to newton and pl to taylor halve with the power or the covariance; Gauss-Newton is taylor."""
    found = links.distances(np.array([6e-4, 3e-4]))
    for name in ("pep-vi", "vi-newton", "pl-taylor"):
        assert found[name][1] == pytest.approx(0.5 * found[name][0], rel=0.02)
    assert found["newton-taylor"].max() < 1e-12


@needs_data
def test_pl_fails_on_the_motorcycle_and_pl2_does_not():
    X, Y, folds = motorcycle.load()
    train = np.setdiff1d(np.arange(132), folds[0])
    scores = {}
    for name in ("pl", "pl2_gaussnewton", "newton_heuristic"):
        model = motorcycle.make(*methods.methods(0.5)[name]).fit(X[train], Y[train], iterations=40)
        scores[name] = motorcycle.nlpd(model, X[folds[0]], Y[folds[0]])
    assert scores["pl"] > scores["pl2_gaussnewton"] + 0.3
    assert scores["pl"] > scores["newton_heuristic"] + 0.3


@needs_data
def test_quasi_newton_finishes():
    """Fold 1 ended at iteration 76 when BFGS kept B itself, whose condition passed 1e16, instead of a root."""
    X, Y, folds = motorcycle.load()
    train = np.setdiff1d(np.arange(132), folds[1])
    model = motorcycle.make(*methods.methods(0.5)["newton_quasinewton"]).fit(X[train], Y[train], iterations=150)
    assert np.isfinite(model.memory_.root).all()
    assert (np.linalg.eigvalsh(model.sites_.precision)[:, 0] >= 0.0).all()
    assert motorcycle.nlpd(model, X[folds[1]], Y[folds[1]]) < 0.5


def test_network_scores_test_rows_only():
    """The mean over rows that hold a removed output, not over zeros elsewhere."""
    data, source = network.load(0, Path("nowhere"))
    assert source == "synthetic"
    assert data.held.sum(axis=0).tolist() == [0, 133, 133]
    model = data.make(rules.Newton(), rules.GaussNewton()).fit(data.X, data.train, iterations=2)
    nlpd, rmse = data.scores(model)
    mean, cov = model.predict_latent(data.X)
    every = -model.likelihood.log_predictive(data.test, mean, cov)
    assert nlpd == pytest.approx(every.sum() / 133)
    assert 0.0 < rmse < 10.0


def test_a_failed_run_is_a_failure():
    _, X, y = small()

    def explode(rule, policy):
        return GaussianProcess(Matern32(1.5, 1.0), lk.Bernoulli(), rule, policy, "markov", verbose=False)

    def score(model):
        if model.result_.iterations:
            msg = "the sites leave no posterior"
            raise ValueError(msg)
        return 0.0, 0.0

    trace, _ = methods.run(explode, X, y, rules.VI(), rules.Exact(), score, 5)
    assert trace.failed.startswith("iteration 1: the sites")
    assert np.isnan(trace.final("nlpd"))


def test_every_method_of_the_figures():
    names = methods.methods(0.5)
    assert len(names) == 19
    assert "pep05_gaussnewton" not in names
    assert "pl_quasinewton" in names
    for name, (rule, policy) in names.items():
        assert methods.line(name)["label"]
        if rule is not None:
            rules.check_pair(rule, policy)
