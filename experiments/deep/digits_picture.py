"""Pictures of what classifiers say about digits and about strangers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments import style
from experiments.deep.scores import entropy

COLORS = {
    "one network": style.BLACK,
    "VIFA": style.BLUE,
    "mean field": style.SKY,
    "SLANG": style.GREEN,
    "SWAG": style.ORANGE,
    "FA of iterates": style.VERMILION,
    "L-RVGA": style.PURPLE,
}
DASHES: dict[str, Any] = {
    "one network": (0, (1, 1.2)),
    "VIFA": "-",
    "mean field": (0, (1.2, 1.2)),
    "SLANG": (0, (5, 2)),
    "SWAG": (0, (5, 1.5, 1, 1.5)),
    "FA of iterates": (0, (3, 2)),
    "L-RVGA": (0, (7, 2)),
}
GRID = np.linspace(0.0, np.log(10.0), 80)


def methods(runs: Mapping[str, Sequence[Any]], table: Mapping[str, Any]) -> Any:
    """Calibration and entropies of every method; all splits together."""
    figure = style.canvas(12.5, 5.0)
    left, middle, right = figure.subplots(1, 3)
    left.plot([0.3, 1.0], [0.3, 1.0], color=style.LIGHT, lw=1.2)
    for name, found in runs.items():
        look = {"color": COLORS[name], "ls": DASHES[name], "lw": 1.8}
        p, y = np.concatenate([each.p for each in found]), np.concatenate([each.y for each in found])
        outside = np.concatenate([each.outside for each in found])
        _reliability(left, p, y, look)
        _share(middle, p, look)
        _share(right, outside, look | {"label": name})
    left.set(xlabel="confidence", ylabel="share that is right", title="Test digits: calibration")
    middle.set(title="Test digits: entropy", ylabel="share of inputs below")
    right.set(title="Mixed pixels: entropy", ylabel="share of inputs below")
    for ax in (middle, right):
        ax.set(xlabel="entropy of the prediction (nats)")
    labels = [
        f"{name}: error {100 * row['error'][0]:.1f} %, log loss {row['log_loss'][0]:.3f}, "
        f"calibration error {100 * row['calibration_error'][0]:.1f} %"
        for name, row in table.items()
    ]
    figure.legend(right.get_lines(), labels, loc="outside lower center", ncols=2)
    return figure


BARS = {
    "error": ("error rate, test digits (%)", 100.0),
    "log_loss": ("log loss, test digits (nats)", 1.0),
    "calibration_error": ("calibration error (%)", 100.0),
    "AUROC, mixed pixels": ("AUROC, mixed pixels", 1.0),
    "AUROC, quarter turn": ("AUROC, quarter turn", 1.0),
}


def architectures(runs: Mapping[tuple[str, str], Sequence[Any]], table: Mapping[str, Mapping[str, Any]]) -> Any:
    """Bars for each score, a group for each network; below, calibration and entropies of the last two networks."""
    figure = style.canvas(13.5, 7.8)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.0, 1.15))
    names = list(dict.fromkeys(name for _, name in runs))
    for ax, (key, (title, unit)) in zip(top.subplots(1, len(BARS)), BARS.items(), strict=True):
        _bars(ax, names, [{name: rows[name][key] for name in names} for rows in table.values()], unit)
        ax.set_xticks(range(len(table)), list(table), fontsize=8)
        ax.set_title(title)
        if key.startswith("AUROC"):
            ax.set_ylim(0.0, 1.0)
            ax.axhline(0.5, color=style.GREY, lw=1.0, ls="--")  # entropy tells nothing
    panels = bottom.subplots(1, 4)
    for kind, left, right in zip(list(table)[-2:], panels[::2], panels[1::2], strict=True):
        left.plot([0.3, 1.0], [0.3, 1.0], color=style.LIGHT, lw=1.2)
        for name in names:
            look = {"color": COLORS[name], "ls": DASHES[name]}
            p, y, outside = (
                np.concatenate([getattr(each, part) for each in runs[kind, name]]) for part in ("p", "y", "outside")
            )
            _reliability(left, p, y, look | {"lw": 1.8})
            _share(right, p, look | {"lw": 1.0})
            _share(right, outside, look | {"lw": 2.2, "label": name})
        left.set(
            xlabel="confidence", ylabel="share that is right", title=f"{kind} network:\ncalibration on test digits"
        )
        right.set(xlabel="entropy of the prediction (nats)", ylabel="share of inputs below")
        right.set_title(f"{kind} network: entropy of\ndigits (thin) and mixed pixels (thick)")
    handles, labels = panels[-1].get_legend_handles_labels()
    bottom.legend(handles, labels, loc="outside lower center", ncols=len(names), handlelength=4)
    return figure


def _bars(ax: Any, names: Sequence[str], groups: Sequence[Mapping[str, Sequence[float]]], unit: float) -> None:
    """A bar for each name in every group, with its standard error where there is one."""
    for number, name in enumerate(names):
        at = np.arange(len(groups)) + (number - 0.5 * (len(names) - 1)) * 0.19
        mean, error = unit * np.array([group[name] for group in groups]).T
        ax.bar(at, mean, 0.17, color=COLORS[name], yerr=np.nan_to_num(error), ecolor=style.GREY)
    ax.grid(axis="x", visible=False)


def _share(ax: Any, p: np.ndarray, look: Mapping[str, Any]) -> None:
    values = np.sort(entropy(p))
    ax.plot(GRID, np.searchsorted(values, GRID, side="right") / len(values), **look)


def _reliability(ax: Any, p: np.ndarray, y: np.ndarray, look: Mapping[str, Any]) -> None:
    """Bins of confidence with at least 15 inputs."""
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    where = np.clip((10 * confidence).astype(int), 0, 9)
    bins = [where == b for b in range(10) if (where == b).sum() >= 15]
    ax.plot([confidence[b].mean() for b in bins], [right[b].mean() for b in bins], marker="o", ms=4, **look)
