"""Lrvga figure 4: expectations from samples instead of closed forms, for three priors; and our mean step beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

import gaussfold as gf
from experiments import style
from experiments.lowrank.problems import Regression, logistic
from experiments.registry import Context, Result
from gaussfold import batch
from gaussfold.metrics import kl_to_posterior_exact
from gaussfold.rules import Extragradient

STYLES: dict[str, tuple[str, Any]] = {
    "closed form, (141)-(143)": (style.BLACK, "-"),
    "K = 1": (style.ORANGE, (0, (1.2, 1.2))),
    "K = 10": (style.BLUE, (0, (5, 2))),
    "K = 100": (style.SKY, (0, (3, 1))),
    "ours, K = 10": (style.VERMILION, "-"),
}


def fig4(context: Context) -> Result:
    """KL along the stream for prior std 1, 2, 3: K = 1, 10, 100 fresh samples, p = 10."""
    d, n = (30, 90) if context.quick else (1000, 1000) if context.full else (100, 500)
    steps = np.unique(np.linspace(0, n, 4 if context.quick else 11).astype(int))[1:]
    figure = style.canvas(13.0, 4.4)
    numbers: dict[str, Any] = {"d": d, "rows": n, "rank": 10, "steps": steps}
    for ax, std in zip(figure.subplots(1, 3, sharey=True), context.track((1.0, 2.0, 3.0), "priors"), strict=True):
        problem = logistic(d, n, std)
        laplace = _kl(problem, batch.laplace(problem.prior, problem.likelihood, problem.X, problem.y))
        ax.axhline(laplace, color=style.GREY, lw=1, label="batch Laplace")
        curves: dict[str, list[float]] = {}
        for name, (color, dashes) in STYLES.items():
            curves[name] = _curve(problem, name, steps)
            ax.plot(steps, curves[name], color=color, ls=dashes, label=name)
        ax.set(title=f"prior std {std:g}", xlabel="rows seen", ylabel="KL, unnormalised", yscale="log")
        closed = curves["closed form, (141)-(143)"][-1]
        numbers[f"prior_std={std:g}"] = {
            "laplace": laplace,
            "kl": curves,
            "final_over_closed_form": {name: curve[-1] / closed for name, curve in curves.items()},
        }
        if std == 1.0:
            ax.legend()
    return Result(figure, numbers)


def _curve(problem: Regression, name: str, steps: np.ndarray) -> list[float]:
    d, std = problem.X.shape[1], problem.prior_std
    belief: Any = gf.LowRankGaussian.isotropic(d, 10, std, projection="eigen")  # as LRVGA's
    model: Any = None
    if "K" in name:
        scheme = "extragradient" if name.startswith("ours") else "extragradient-printed"
        options: dict[str, Any] = {"rank": 10, "prior_std": std, "scheme": scheme, "n_samples": int(name.split()[-1])}
        model = gf.deep.LRVGA(_linear, "bernoulli", np.zeros(d, np.float32), linearise="samples", seed=4, **options)
    seen, found = 0, []
    for step in steps:
        X, y = problem.X[seen:step], problem.y[seen:step]
        if model is None:
            gf.fold(belief, problem.likelihood, X, y, "vi", Extragradient("mean-only"))
        else:
            belief = model.partial_fit(X, y).posterior.belief
        seen = step
        found.append(_kl(problem, belief.to_dense()))
    return found


def _linear(params: Any, x: Any) -> Any:
    return x @ params


def _kl(problem: Regression, belief: Any) -> float:
    return kl_to_posterior_exact(belief, problem.prior, problem.likelihood, problem.X, problem.y)
