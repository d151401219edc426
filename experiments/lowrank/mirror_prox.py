"""Lrvga figure 5: ten points, a flat prior, four schemes; and what KL says about them."""

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


def fig5(context: Context) -> Result:
    """Ellipses over the true posterior, for separations 6 and 3."""
    figure = style.canvas(14.0, 6.0)
    axes = figure.subplots(2, len(METHODS))
    likelihood = gf.likelihoods.Bernoulli()
    numbers: dict[str, Any] = {}
    for row, s in zip(axes, (6.0, 3.0), strict=True):
        rng = np.random.default_rng(5)
        y = np.repeat([0.0, 1.0], 5)
        X = (
            rng.standard_normal((10, 2)) / np.sqrt(2.0)
            + np.where(y[:, None] > 0, 0.5, -0.5) * s * np.array([0.2, 0.98]) / 2
        )
        order = rng.permutation(10)
        X, y = X[order], y[order]
        prior = gf.DenseGaussian.isotropic(2, 10.0)
        grid = batch.GridPosterior(prior, likelihood, X, y)
        for ax, (name, (rule, at)) in zip(row, context.track(METHODS.items(), f"s = {s:g}"), strict=True):
            belief = prior.copy()
            gf.fold(belief, likelihood, X, y, rule, at)
            value = kl_to_posterior_exact(belief, prior, likelihood, X, y) + grid.log_evidence
            numbers.setdefault(f"s={s:g}", {})[name] = value
            _panel(ax, prior, likelihood, X, y, belief)
            ax.set_title(f"{name}: KL {value:.2f}", fontsize=9)
            ax.set(xlabel="θ₁", ylabel=f"separation {s:g}\nθ₂" if name == "EKF" else "")
    axes[0, 0].legend(fontsize=7, loc="lower left")
    return Result(figure, numbers)


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
