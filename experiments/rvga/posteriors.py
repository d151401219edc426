"""Figures 3-6 and 14-16: data, KL over the stream, ellipses over the true posterior in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import gaussfold as gf
from experiments.registry import Context, Result
from experiments.rvga import panels, settings
from experiments.rvga.methods import (
    LOGISTIC,
    METHODS,
    against_reference,
    batch_kls,
    history,
    laplace,
    refined_kls,
    replicates,
    unnormalised_kl,
)
from experiments.rvga.settings import Problem, Setting
from experiments.style import BLACK, LINES, canvas
from gaussfold import batch
from gaussfold.types import Array

ORDER = ("implicit", "exact", "explicit", "ekf", "qkf")
SHOWN_AT = (3, 6, 12, 25, 50, 100)
"""Observations after which figures 14-16 draw an ellipse."""
AT_THE_END = "90 % ellipses after the stream, and Laplace's, over the 50, 90 and 99 % regions of the true posterior"
OVER_TIME = (
    f"90 % ellipses after {', '.join(map(str, SHOWN_AT[:-1]))} observations (pale to dark) and "
    f"{SHOWN_AT[-1]} (black), and Laplace's, over the 50, 90 and 99 % regions of the true posterior"
)


def fig03(context: Context) -> Result:
    """Draw the case of a sharp prior: nearly linear, everybody is good."""
    return _figure(settings.FIG03, context, "s = 2, c = 2, σ₀ = 1, ‖μ₀‖ = 0.1")


def fig04(context: Context) -> Result:
    """Draw the case of a flatter prior."""
    return _figure(settings.FIG04, context, "s = 2, c = 2, σ₀ = 10, ‖μ₀‖ = 1")


def fig05(context: Context) -> Result:
    """Draw the case of a flat prior far off, on which the EKF diverges."""
    return _figure(settings.FIG05, context, "s = 2, c = 2, σ₀ = 100, ‖μ₀‖ = 10")


def fig06(context: Context) -> Result:
    """Draw separable data: a skew posterior, on which Laplace spills over."""
    return _figure(settings.FIG06, context, "s = 5, c = 2, σ₀ = 10, μ₀ = 0")


def fig14(context: Context) -> Result:
    """Draw overlapping classes."""
    return _figure(settings.FIG14, context, "s = 2, c = 1, σ₀ = 10, μ₀ = 0", over_time=True)


def fig15(context: Context) -> Result:
    """Draw nearly separable classes."""
    return _figure(settings.FIG15, context, "s = 5, c = 1, σ₀ = 10, μ₀ = 0", over_time=True)


def fig16(context: Context) -> Result:
    """Draw classes far apart."""
    return _figure(settings.FIG16, context, "s = 10, c = 1, σ₀ = 10, μ₀ = 0", over_time=True)


def _figure(setting: Setting, context: Context, title: str, *, over_time: bool = False) -> Result:
    problem = settings.load(setting, context.oracles)
    steps = np.arange(len(problem.y) + 1)
    grid = batch.GridPosterior(problem.prior, LOGISTIC, problem.X, problem.y)
    beliefs = {key: history(METHODS[key], problem, steps) for key in context.track(METHODS, "streaming")}
    curves = {
        key: [unnormalised_kl(belief, problem) for belief in path]
        for key, path in context.track(beliefs.items(), "KL along the stream")
    }
    batch_belief = laplace(problem)
    curves |= batch_kls(problem)
    log_evidence = float(grid.log_evidence)
    true = {key: [value + log_evidence for value in values] for key, values in curves.items()}

    figure = canvas(13.0, 7.4)
    upper, lower, foot = np.asarray(figure.subfigures(3, 1, height_ratios=[1.0, 0.92, 0.08]))
    axes = dict(zip(("data", "kl", "true"), upper.subplots(1, 3, width_ratios=[1, 1.7, 1.7]), strict=True))
    lower.suptitle(OVER_TIME if over_time else AT_THE_END, fontsize=9.5)
    axes |= dict(zip(ORDER, lower.subplots(1, 5), strict=True))
    panels.data(axes["data"], problem, title)
    panels.kl_curves(axes["kl"], steps, curves, "KL without the evidence (as in the paper)", "KL, with Z = 1")
    panels.kl_curves(axes["true"], steps, true, "true KL (evidence from a grid)", "KL (nats)")
    draw = _over_time if over_time else _at_the_end
    draw(_Scene(axes, beliefs, batch_belief, grid, 90 if context.quick else 240))
    handles, labels = axes["kl"].get_legend_handles_labels()
    foot.legend(handles, labels, loc="center", ncols=7)

    final = {key: values[-1] for key, values in curves.items()}
    numbers: dict[str, Any] = {
        "data": problem.source,
        "setting": setting.numbers(),
        "log_evidence": log_evidence,
        "final_kl_unnormalised": final,
        "final_kl": {key: values[-1] for key, values in true.items()},
        "order": sorted(final, key=final.__getitem__),
        "posterior_mean": grid.mean,
        "posterior_cov": grid.cov,
        "belief_mean": {key: path[-1].mean for key, path in beliefs.items()} | {"laplace": batch_belief.mean},
        "steps": steps,
        "kl_unnormalised": curves,
        "kl_after_30_sweeps": refined_kls(problem),
        "oracle_difference": against_reference(problem, steps, curves) | _evidence_error(problem, log_evidence),
        "replicates": replicates(setting, context, "other data sets"),
    }
    return Result(figure, numbers)


def _evidence_error(problem: Problem, log_evidence: float) -> dict[str, float]:
    if problem.reference is None:
        return {}
    return {"log_evidence": abs(log_evidence - float(problem.reference["log_evidence"]))}


class _Scene(NamedTuple):
    """What the ellipses of one figure are drawn from, and where."""

    axes: dict[str, Any]
    beliefs: dict[str, list[gf.DenseGaussian]]
    batch_belief: gf.DenseGaussian
    grid: batch.GridPosterior
    points: int

    def backdrop(self, in_view: Sequence[gf.DenseGaussian]) -> panels.Box:
        """Draw the regions of the true posterior and Laplace's ellipse; the box holds these and what is to be seen."""
        clouds = [panels.ellipse(b.mean, b.cov) for b in (*in_view, self.batch_belief)]
        box = panels.around([panels.region(self.grid), *clouds])
        surface = panels.surface(self.grid, box, self.points)
        for key in self.beliefs:
            panels.contours(self.axes[key], *surface)
            _outline(self.axes[key], self.batch_belief, "laplace")
        return box


def _at_the_end(scene: _Scene) -> None:
    """Draw the final ellipse of each method, with Laplace's, over the regions of the true posterior."""
    final = {key: path[-1] for key, path in scene.beliefs.items()}
    box = scene.backdrop((final["implicit"], final["exact"]))
    for key, belief in final.items():
        ax, line = scene.axes[key], LINES[key]
        _outline(ax, belief, key)
        ax.plot(*belief.mean, "o", color=line.color, ms=4, zorder=7)
        _frame(ax, box, belief, key)


def _over_time(scene: _Scene) -> None:
    """Draw the ellipses as they shrink, pale to dark, the last in black, with Laplace's in its colour."""
    box = scene.backdrop([scene.beliefs[key][t] for key in ("implicit", "exact") for t in SHOWN_AT[2:]])
    for key, path in scene.beliefs.items():
        ax, line = scene.axes[key], LINES[key]
        shades = np.linspace(0.3, 1.0, len(SHOWN_AT) - 1)
        for step, shade in zip(SHOWN_AT[:-1], shades, strict=True):
            ax.plot(*panels.ellipse(path[step].mean, path[step].cov), color=line.color, alpha=shade, lw=1.2)
        ax.plot(*panels.ellipse(path[-1].mean, path[-1].cov), color=BLACK, lw=1.6, zorder=6)
        means = np.array([belief.mean for belief in path]).T
        ax.plot(*means, color=line.color, lw=0.7, alpha=0.8)
        ax.plot(*path[-1].mean, "o", color=BLACK, ms=4, zorder=7)
        _frame(ax, box, path[-1], key)


def _outline(ax: Any, belief: gf.DenseGaussian, key: str) -> None:
    line = LINES[key]
    ax.plot(*panels.ellipse(belief.mean, belief.cov), color=line.color, lw=1.8, zorder=line.zorder + 1)


def _frame(ax: Any, box: panels.Box, belief: gf.DenseGaussian, key: str) -> None:
    """Title and limits; if the last belief of the method is not in view, say so."""
    ax.set(xlim=box[:2], ylim=box[2:], title=LINES[key].label.split(" (")[0], xlabel=r"$\theta_1$")
    ax.grid(visible=False)
    if key == "implicit":
        ax.set_ylabel(r"$\theta_2$")
    else:
        ax.tick_params(labelleft=False)
    _warn_if_outside(ax, belief, box)


def _warn_if_outside(ax: Any, belief: gf.DenseGaussian, box: panels.Box) -> None:
    """Say so when the ellipse is not in view, instead of leaving an empty panel."""
    points: Array = panels.ellipse(belief.mean, belief.cov)
    visible = (points[0] > box[0]) & (points[0] < box[1]) & (points[1] > box[2]) & (points[1] < box[3])
    if not visible.any():
        std = np.sqrt(np.diag(belief.cov))
        mean = f"mean ({belief.mean[0]:.4g}, {belief.mean[1]:.4g})"
        text = f"out of view:\n{mean}\nstd ({std[0]:.3g}, {std[1]:.3g})"
        pale = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.5}
        ax.text(0.96, 0.04, text, transform=ax.transAxes, ha="right", va="bottom", fontsize=8.5, bbox=pale)
