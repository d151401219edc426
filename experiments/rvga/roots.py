"""Figures 12 and 13: the two equations behind one implicit update, and why plain iteration fails on them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit

import gaussfold as gf
from experiments.registry import Context, Result
from experiments.style import BLACK, BLUE, GREEN, VERMILION, canvas
from gaussfold.likelihoods import Bernoulli
from gaussfold.types import Array

BETA_SQUARED = 8.0 / math.pi


def k(nu: Array) -> Array:
    """Return rvga (75)."""
    return np.asarray(np.sqrt(BETA_SQUARED / (nu + BETA_SQUARED)))


def iterate(alpha: Array, nu: Array, alpha0: float, nu0: float, y: float) -> tuple[Array, Array]:
    """Apply the map of rvga (125)-(126), whose fixed point is the update."""
    a = alpha * k(nu)
    slope = expit(a) * expit(-a)
    return alpha0 + nu0 * (y - expit(a)), nu0 / (1.0 + nu0 * k(nu) * slope)


def domain(alpha0: float, nu0: float, y: float) -> tuple[float, float, float, float]:
    """Return α_min, α_max, ν_min, ν_max of rvga (71)-(72)."""
    return alpha0 + nu0 * (y - 1.0), alpha0 + nu0 * y, nu0 * (1.0 - nu0 / (4.0 + nu0)), nu0


def shrink(box: tuple[float, float, float, float], alpha0: float, nu0: float, y: float) -> tuple[float, ...]:
    """Tighten the bounds once: rvga (129)-(136)."""
    low, high, nu_low, nu_high = box
    k_low, k_high = float(k(np.array(nu_high))), float(k(np.array(nu_low)))  # k decreases
    a1 = low * (k_low if low >= 0 else k_high)
    a2 = high * (k_high if high >= 0 else k_low)
    slopes = [float(expit(a) * expit(-a)) for a in (a1, a2)]
    b1, b2 = min(slopes), max(slopes) if a1 * a2 > 0 else 0.25
    return (
        alpha0 + nu0 * (y - float(expit(a2))),
        alpha0 + nu0 * (y - float(expit(a1))),
        nu0 / (1.0 + nu0 * k_high * b2),
        nu0 / (1.0 + nu0 * k_low * b1),
    )


def root(alpha0: float, nu0: float, y: float) -> tuple[float, float]:
    """Return (α, ν): the marginal after folding one row x = 1 into N(α0, ν0)."""
    belief = gf.DenseGaussian(np.array([alpha0]), np.array([[nu0]]))
    likelihood = Bernoulli("logit", expectation="probit")
    gf.fold(belief, likelihood, np.ones((1, 1)), np.array([y]), "vi", "posterior")
    return float(belief.mean[0]), float(belief.cov[0, 0])


def fig12(context: Context) -> Result:
    """Draw the functions f and g of (69)-(70) for α0 = 100, ν0 = 300, y = 0, as maps and as surfaces."""
    alpha0, nu0, y = 100.0, 300.0, 0.0
    low, high, nu_low, nu_high = domain(alpha0, nu0, y)
    n = 41 if context.quick else 161
    alpha, nu = np.linspace(low, high, n), np.linspace(nu_low, nu_high, n)
    A, V = np.meshgrid(alpha, nu)
    next_alpha, next_nu = iterate(A, V, alpha0, nu0, y)
    alpha_root, nu_root = root(alpha0, nu0, y)
    figure = canvas(11.0, 8.2)
    surfaces = (("f", A - next_alpha, r"$f(\alpha,\nu)$"), ("g", V - next_nu, r"$g(\alpha,\nu)$"))
    for column, (_, values, label) in enumerate(surfaces):
        ax = figure.add_subplot(2, 2, 1 + column)
        limit = 300.0  # |f| and |g| stay below ν0
        steps = np.linspace(-limit, limit, 25)
        mesh = ax.contourf(A, V, values, steps, cmap="PuOr")
        ax.contour(A, V, values, [0.0], colors=[BLACK], linewidths=1.6)
        ax.plot(
            alpha0,
            nu0,
            "o",
            color=BLUE,
            ms=9,
            mec="white",
            clip_on=False,
            zorder=5,
            label=r"start $(\alpha_0, \nu_0)$",
        )
        ax.plot(alpha_root, nu_root, "o", color=VERMILION, ms=9, mec="white", zorder=5, label="root")
        ax.set(title=f"{label}, black where it is zero", xlabel=r"$\alpha$", ylabel=r"$\nu$")
        ax.grid(visible=False)
        ax.legend(loc="center left", frameon=True, framealpha=0.9, edgecolor="none")
        figure.colorbar(mesh, ax=ax)
        solid: Any = figure.add_subplot(2, 2, 3 + column, projection="3d")
        solid.plot_surface(A, V, values, cmap="PuOr", vmin=-limit, vmax=limit, rcount=36, ccount=36, linewidth=0)
        solid.set(xlabel=r"$\alpha$", ylabel=r"$\nu$", title=label)
        solid.view_init(elev=28, azim=-60)
        solid.set_box_aspect(None, zoom=1.1)
    at_root = iterate(np.array(alpha_root), np.array(nu_root), alpha0, nu0, y)
    numbers = {
        "alpha0": alpha0,
        "nu0": nu0,
        "y": y,
        "domain": [low, high, nu_low, nu_high],
        "root": [alpha_root, nu_root],
        "residuals": [alpha_root - float(at_root[0]), nu_root - float(at_root[1])],
    }
    return Result(figure, numbers)


def fig13(context: Context) -> Result:
    """Draw bounds (129)-(136) against iterations of the map (125)-(126), for ν0 = 1, 5, 10."""
    alpha0, y, length = 2.0, 0.0, 10 if context.quick else 20
    figure = canvas(12.0, 6.2)
    axes = figure.subplots(2, 3, sharex=True)
    numbers: dict[str, Any] = {"alpha0": alpha0, "y": y, "panels": {}}
    times = np.arange(length + 1)
    for column, nu0 in enumerate((1.0, 5.0, 10.0)):
        exact = root(alpha0, nu0, y)
        boxes = [domain(alpha0, nu0, y)]
        for _ in range(length):
            boxes.append(shrink(boxes[-1], alpha0, nu0, y))  # type: ignore[arg-type]
        bounds = np.array(boxes)
        paths = []
        for start in ((boxes[0][0], boxes[0][2]), (boxes[0][1], boxes[0][3])):
            path = [start]
            for _ in range(length):
                alpha, nu = iterate(np.array(path[-1][0]), np.array(path[-1][1]), alpha0, nu0, y)
                path.append((float(alpha), float(nu)))
            paths.append(np.array(path))
        for row, symbol in enumerate((r"$\alpha$", r"$\nu$")):
            ax = axes[row, column]
            ax.fill_between(times, *bounds[:, 2 * row : 2 * row + 2].T, color=GREEN, alpha=0.15, lw=0)
            for side in (0, 1):
                ax.plot(times, bounds[:, 2 * row + side], color=GREEN, lw=2.0, label="bounds" if side else None)
            for track, color, name in zip(paths, (BLUE, VERMILION), ("lower", "upper"), strict=True):
                ax.plot(
                    times,
                    track[:, row],
                    color=color,
                    lw=1.4,
                    marker=".",
                    ms=5,
                    label=f"iteration from the {name} corner",
                )
            ax.axhline(exact[row], color=BLACK, lw=1.2, ls=(0, (4, 2)), label="root (ours)")
            if row == 0:
                ax.set_title(rf"$\nu_0$ = {nu0:g}")
            else:
                ax.set_xlabel("iteration")
            ax.set_ylabel(symbol if column == 0 else "")
            ax.set_xlim(0, length)
        numbers["panels"][f"nu0 = {nu0:g}"] = {
            "root": list(exact),
            "bounds_at_the_end": bounds[-1],
            "width_of_bounds": [bounds[-1, 1] - bounds[-1, 0], bounds[-1, 3] - bounds[-1, 2]],
            "error_of_the_iterations": [np.abs(track[-1] - exact) for track in paths],
            "root_inside_all_bounds": bool(
                np.all(bounds[:, [0, 2]] <= np.array(exact) + 1e-12)
                and np.all(bounds[:, [1, 3]] >= np.array(exact) - 1e-12)
            ),
        }
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return Result(figure, numbers)
