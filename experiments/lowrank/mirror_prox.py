"""Lrvga figure 5: ten points, a flat prior, five schemes; and what KL says about them, over forty draws."""

from __future__ import annotations

from typing import Any

import numpy as np

import gaussfold as gf
from experiments import style
from experiments.registry import Context, Result
from gaussfold import batch
from gaussfold.metrics import kl_to_posterior_exact
from gaussfold.rules import Extragradient

METHODS: dict[str, tuple[str, Any]] = {
    "EKF": ("taylor", "prior"),
    "explicit": ("vi", "prior"),
    "implicit": ("vi", "posterior"),
    "mirror-prox as printed": ("vi", Extragradient("printed")),
    "mirror-prox, natural": ("vi", "extragradient"),
}


PRIOR_STD = 10.0


def fig5(context: Context) -> Result:
    """Ellipses over the true posterior of one draw, for class means 6 and 3 apart; KL over many draws."""
    figure = style.canvas(14.0, 6.0)
    axes = figure.subplots(2, len(METHODS), sharex=True, sharey=True)
    numbers: dict[str, Any] = {}
    for row, s in zip(axes, (6.0, 3.0), strict=True):
        draws = [_kls(s, seed) for seed in context.track(range(3 if context.quick else 40), f"s = {s:g}")]
        best = [min(each, key=lambda name, each=each: each[name]) for each in draws]
        numbers[f"s={s:g}"] = {
            "draw shown": draws[SHOWN % len(draws)],
            "draws": len(draws),
            "median KL": {name: float(np.median([each[name] for each in draws])) for name in METHODS},
            "best of": {name: best.count(name) for name in METHODS},
        }
        X, y, prior = _points(s, SHOWN % len(draws))
        for ax, (name, (rule, at)) in zip(row, METHODS.items(), strict=True):
            belief = prior.copy()
            gf.fold(belief, LIKELIHOOD, X, y, rule, at)
            _panel(ax, prior, LIKELIHOOD, X, y, belief)
            value, middle = draws[SHOWN % len(draws)][name], numbers[f"s={s:g}"]["median KL"][name]
            ax.set_title(f"{name}\nKL {value:.2f}, median {middle:.2f}", fontsize=9)
            ax.set(xlabel="θ₁", ylabel=f"classes {s:g} apart\nθ₂" if name == "EKF" else "")
    axes[0, 0].legend(fontsize=7, loc="lower left")
    return Result(figure, numbers)


LIKELIHOOD = gf.likelihoods.Bernoulli()
SHOWN = 5
"""The draw in the picture."""


def _points(s: float, seed: int) -> tuple[np.ndarray, np.ndarray, gf.DenseGaussian]:
    """Ten points of two classes whose means are s apart, of unit mean square distance from them."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0.0, 1.0], 5)
    X = rng.standard_normal((10, 2)) / np.sqrt(2.0) + np.where(y[:, None] > 0, 0.5, -0.5) * s * np.array([0.2, 0.98])
    order = rng.permutation(10)
    return X[order], y[order], gf.DenseGaussian.isotropic(2, PRIOR_STD)


def _kls(s: float, seed: int) -> dict[str, float]:
    X, y, prior = _points(s, seed)
    evidence = batch.GridPosterior(prior, LIKELIHOOD, X, y).log_evidence
    found = {}
    for name, (rule, at) in METHODS.items():
        belief = prior.copy()
        gf.fold(belief, LIKELIHOOD, X, y, rule, at)
        found[name] = kl_to_posterior_exact(belief, prior, LIKELIHOOD, X, y) + evidence
    return found


def _panel(ax: Any, prior: Any, likelihood: Any, X: np.ndarray, y: np.ndarray, belief: Any) -> None:
    side = np.linspace(-15.0, 25.0, 121)
    theta = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    height = prior.log_prob(theta) + likelihood.log_prob(y[:, None], X @ theta.T).sum(axis=0)
    density = np.exp(height - height.max()).reshape(121, 121)
    ax.contour(side, side, density, levels=6, colors=style.GREEN, linewidths=0.8)
    ax.plot([], [], color=style.GREEN, lw=0.8, label="true posterior")
    turn = np.linspace(0.0, 2.0 * np.pi, 100)
    ring = belief.mean[:, None] + 2.146 * belief.factor @ np.stack([np.cos(turn), np.sin(turn)])
    ax.plot(*ring, color=style.VERMILION, label="90 % of the Gaussian")
    ax.set(xlim=(-15, 25), ylim=(-15, 25), aspect="equal")
