"""Figures 1 and 2: the two approximations of the logistic function that make integrals easy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, ndtr

from experiments.registry import Context, Result
from experiments.style import BLACK, BLUE, GREEN, ORANGE, SKY, VERMILION, canvas
from gaussfold.likelihoods import Bernoulli
from gaussfold.types import Array, Moments

LAMBDA = math.sqrt(math.pi / 8.0)
XI = ((1.0, SKY), (2.5, GREEN), (5.0, ORANGE))


def fig01(context: Context) -> Result:
    """Draw σ(a) against Φ(λa), λ = √(π/8), their derivatives, and what differs."""
    a = np.linspace(-8.0, 8.0, 1601)
    curves = (
        ("function", r"$\sigma(a)$", expit(a), r"$\Phi(\lambda a)$", ndtr(LAMBDA * a)),
        (
            "derivative",
            r"$\sigma'(a)$",
            expit(a) * expit(-a),
            r"$\lambda\,\varphi(\lambda a)$",
            LAMBDA * np.exp(-0.5 * (LAMBDA * a) ** 2) / math.sqrt(2.0 * math.pi),
        ),
    )
    figure = canvas(10.0, 5.4)
    axes = figure.subplots(2, 2, height_ratios=[2.2, 1.0], sharex=True)
    numbers = {}
    for column, (name, left, exact, right, approximate) in enumerate(curves):
        upper, lower = axes[0, column], axes[1, column]
        upper.plot(a, exact, color=BLACK, lw=2.0, label=f"logistic {left}")
        upper.plot(a, approximate, color=VERMILION, lw=2.0, ls=(0, (4, 2)), label=f"inverse probit {right}")
        upper.set(title=f"the {name}s")
        upper.legend(loc="upper left")
        lower.plot(a, approximate - exact, color=BLUE, lw=1.6)
        lower.axhline(0.0, color=BLACK, lw=0.8)
        lower.set(xlabel="a", xlim=(-8, 8), ylabel="difference" if column == 0 else "")
        numbers[f"max_abs_difference_{name}"] = float(np.max(np.abs(approximate - exact)))
    axes[0, 1].set_ylim(0.0, 0.32)
    return Result(figure, numbers | _expectation_errors(context))


def _expectation_errors(context: Context) -> dict[str, float | list[float]]:
    """Compare the closed forms (58) with quadrature: what the approximation costs where it is used."""
    m, v = np.meshgrid(np.linspace(0.0, 12.0, 25 if context.quick else 121), np.geomspace(1e-2, 1e3, 26))
    moments, ones = Moments(m.ravel(), v.ravel()), np.ones(m.size)
    closed, quadrature = (
        Bernoulli("logit", expectation=kind).expected_derivatives(ones, moments) for kind in ("probit", "quadrature")
    )
    gradient = np.abs(closed[0] - quadrature[0])
    curvature = np.abs(closed[1] / quadrature[1] - 1.0)
    worst = int(np.argmax(gradient))
    return {
        "max_abs_error_expected_gradient": float(gradient.max()),
        "worst_gradient_at_mean_variance": [float(moments.mean[worst]), float(moments.variance[worst])],
        "max_relative_error_expected_curvature_mean_below_3": float(curvature[moments.mean <= 3.0].max()),
        "max_relative_error_expected_curvature": float(curvature.max()),
    }


def _slope(xi: float) -> float:
    """Return η of rvga (83)."""
    return -(float(expit(xi)) - 0.5) / (2.0 * xi)


def _log_bound(f: Array, xi: float) -> Array:
    """Return the log of the lower bound (82) on σ(f), which touches at f = ±ξ."""
    return np.asarray(log_expit(xi) + 0.5 * (f - xi) + _slope(xi) * (f**2 - xi**2))


def fig02(context: Context) -> Result:
    """Draw the bound (82) on σ and the one on the loss, in one dimension; the loss's also in two."""
    f = np.linspace(-10.0, 10.0, 2001)
    figure = canvas(13.0, 4.3)
    left, middle, right = figure.subplots(1, 3)
    left.plot(f, expit(f), color=BLACK, lw=2.2, label=r"$\sigma(f)$")
    middle.plot(f, -log_expit(f), color=BLACK, lw=2.2, label=r"$-\log\sigma(f)$")
    numbers = {}
    for xi, color in XI:
        bound = _log_bound(f, xi)
        for ax, values, touch in ((left, np.exp(bound), expit), (middle, -bound, lambda t: -log_expit(t))):
            ax.plot(f, values, color=color, lw=1.7, ls=(0, (5, 2)), label=rf"bound, $\xi$ = {xi:g}")
            ax.plot([-xi, xi], touch(np.array([-xi, xi])), "o", color=color, ms=5)
        gap = log_expit(f) - bound
        touching = log_expit(np.array([-xi, xi])) - _log_bound(np.array([-xi, xi]), xi)
        numbers[f"xi = {xi:g}"] = {
            "smallest_gap": float(gap.min()),
            "gap_where_they_touch": float(np.abs(touching).max()),
            "curvature_of_the_bound": -2.0 * _slope(xi),
            "curvature_of_the_loss_at_xi": float(expit(xi) * expit(-xi)),
        }
    left.set(title="lower bound on the logistic function", xlabel="f", xlim=(-10, 10), ylim=(0, 1.05))
    left.legend(loc="upper left")
    left.set_xticks(range(-10, 11, 5))
    middle.set_xticks(range(-10, 11, 5))
    middle.set(title="upper bound on the loss, y = 1", xlabel="f", xlim=(-10, 10), ylim=(0, 14))
    middle.legend(loc="upper right")
    _two_dimensions(right, 60 if context.quick else 200)
    return Result(figure, {"bounds": numbers})


def _two_dimensions(ax: Any, n: int) -> None:
    """Draw the loss of two observations in the plane, and its quadratic bound: contours against ellipses."""
    grid = np.linspace(-6.0, 6.0, n)
    theta = np.stack(np.meshgrid(grid, grid), axis=-1)
    loss, bound = np.zeros((n, n)), np.zeros((n, n))
    for x, y in (((1.0, 0.4), 1.0), ((-0.3, 1.0), 0.0)):
        f = (2.0 * y - 1.0) * (theta @ np.array(x))
        loss -= log_expit(f)
        bound -= _log_bound(f, 2.5)
    levels = [1.0, 2.0, 3.0, 5.0, 8.0]
    ax.contour(grid, grid, loss, levels, colors=[BLACK], linewidths=1.4)
    ax.contour(grid, grid, bound, levels, colors=[GREEN], linewidths=1.4, linestyles="--")
    ax.plot([], [], color=BLACK, label="loss of two observations")
    ax.plot([], [], color=GREEN, ls="--", label=r"its bound, $\xi$ = 2.5")
    ax.set(title="the same in two dimensions (levels 1, 2, 3, 5, 8)", xlabel=r"$\theta_1$", ylabel=r"$\theta_2$")
    ax.legend(loc="lower left", frameon=True, framealpha=1.0, edgecolor="none")
