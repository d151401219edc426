"""Table 1 and Figures 1 to 6 of the sparse online paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from experiments.registry import Context, Result
from experiments.sparse import regret
from experiments.sparse.streams import Stream
from experiments.style import BLUE, GREEN, ORANGE, canvas

FAST = ["sgd", "sgd-root", "adf", "adf-exact", "dimgauss", "gauss", "approx", "auto", "vb"]
SAMPLED = ["vb100", "vb1000"]
VARIANTS = [
    "gauss", "approx", "height", "approx-height", "dimgauss", "dimgauss-step", "batches-10", "batches-100", "vb",
    "vb1000", "vb1000-taylor",
]  # fmt: skip
PRIORS = tuple(2.0**k for k in range(-4, 5))
RIVALS = ["sgd", "adf", "dimgauss", "gauss", *SAMPLED]
AT_TEN_MILLION = {  # r_T of the paper's Table 1, 20 and 40 of 200 active; it has no VB with 1000 samples there
    "sgd": (135.9, 219.88), "adf": (540.3, 388.51), "dimgauss": (82.54, 109.16), "gauss": (93.85, 144.28),
    "approx": (93.85, 144.28), "vb100": (649.57, 1125.3),
}  # fmt: skip
PAPER = {  # r_T of the paper's Table 1 at a million examples, 20 and 40 of 200 active
    "sgd": (117.6, 246.3), "adf": (190.3, 178.6), "dimgauss": (78.02, 97.52), "gauss": (77.66, 91.5),
    "approx": (77.66, 91.5), "vb100": (144.22, 202.9), "vb1000": (85.07, 104.31),
}  # fmt: skip


def examples(context: Context) -> int:
    """How many: a million, or ten with --full."""
    return 10_000 if context.quick else 10_000_000 if context.full else 1_000_000


def _seeds(context: Context) -> int:
    return 1 if context.quick else 3


def _settings_of_table_1() -> dict[str, Stream]:
    return {f"{a} of 200 active, std 1": Stream(200, a, 1.0) for a in (20, 40)}


def table1(context: Context) -> Result:
    """Seconds and r_T = R_T / log T with 20 and 40 of 200 features active, true weights of std 1."""
    n = examples(context)
    figure = canvas(12.0, 4.6)
    numbers: dict[str, Any] = {"panels": {}}
    for k, (ax, (title, stream)) in enumerate(zip(figure.subplots(1, 2), _settings_of_table_1().items(), strict=True)):
        found = regret.compare(stream, FAST + SAMPLED, context, n, _seeds(context), title)
        paper = {name: values[k] for name, values in PAPER.items()}
        numbers["panels"][title] = found | {"paper_r_T_at_a_million": paper}
        regret.draw_table(ax, found, paper, title)
    return Result(figure, numbers)


def fig01(context: Context) -> Result:
    """Regret over log t for the two settings of Table 1: the same runs, so the mean of three seeds."""
    return _panels(context, _settings_of_table_1(), FAST + SAMPLED, examples(context), seeds=_seeds(context))


def fig02(context: Context) -> Result:
    """22 categories of 2^j features, Zipf; and real data."""
    from experiments.sparse import real

    categories = 12 if context.quick else 22
    stream = Stream(2 ** (categories + 1) - 2, 1, 2.0, "zipf", categories)
    names = ["sgd", "adf", "dimgauss", "gauss", "auto"]
    title = f"{stream.dim:,} features, Zipf, std 2"
    numbers: dict[str, Any] = {"panels": {title: regret.compare(stream, names, context, examples(context), 1, title)}}
    measured = real.panel(context)
    if measured:
        numbers["real"] = measured
    return Result(draw_fig02(numbers), numbers)


def draw_fig02(numbers: dict[str, Any]) -> Any:
    """Draw the synthetic stream on the left, the real data (if they are there) on the right."""
    from experiments.sparse import real

    shares = [1.0, 1.6] if "real" in numbers else [1.0]
    figure = canvas(13.5 if "real" in numbers else 6.5, 4.8)
    axes = figure.subplots(1, len(shares), squeeze=False, width_ratios=shares)[0]
    ((title, found),) = numbers["panels"].items()
    regret.draw(axes[0], found, title)
    if "real" in numbers:
        real.draw(axes[1], numbers["real"])
    shown = {label: handle for ax in axes[::-1] for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown, loc="outside lower center", ncols=3)
    return figure


def fig03(context: Context) -> Result:  # noqa: ARG001
    """The logistic distribution and the normal one of variance 8/π, and their differences."""
    w = np.linspace(-8, 8, 1601)
    sigma = 1 / (1 + np.exp(-w))
    pdf, normal_pdf = sigma * (1 - sigma), np.exp(-np.pi * w * w / 16) / 4
    cdf, normal_cdf = sigma, ndtr(np.sqrt(np.pi / 8) * w)
    figure = canvas(12.0, 4.0)
    left, middle, right = figure.subplots(1, 3)
    for ax, ours, theirs, title in (
        (left, pdf, normal_pdf, "densities"),
        (middle, cdf, normal_cdf, "distribution functions"),
    ):
        ax.plot(w, ours, color=BLUE, label="logistic")
        ax.plot(w, theirs, color=ORANGE, ls=(0, (5, 2)), label="normal, variance 8/π")
        ax.plot(w, ours - theirs, color=GREEN, label="difference")
        ax.set(title=title, xlabel="w")
    middle.legend()  # for both: on the left there is no room
    right.plot(w, pdf - normal_pdf, color=BLUE, label="densities")
    right.plot(w, cdf - normal_cdf, color=GREEN, label="distribution functions")
    right.set(title="differences", xlabel="w")
    right.legend()
    numbers = {
        "max_abs_difference_density": float(np.abs(pdf - normal_pdf).max()),
        "max_abs_difference_distribution": float(np.abs(cdf - normal_cdf).max()),
    }
    return Result(figure, numbers)


def fig04(context: Context) -> Result:
    """Nine settings: 5, 20, 40 of 200 active, true weights of std 1, 2, 3."""
    panels = {f"{a} of 200 active, std {s}": Stream(200, a, float(s)) for s in (1, 2, 3) for a in (5, 20, 40)}
    return _panels(context, panels, RIVALS, examples(context), columns=3, seeds=_seeds(context))


def fig05(context: Context) -> Result:
    """Values in [0, 1]; and ten times as many features."""
    wide = Stream(2000, 200, 2.0)
    panels = {"40 of 200, values in [0, 1], std 2": Stream(200, 40, 2.0, values=True), "200 of 2000, std 2": wide}
    return _panels(context, panels, RIVALS, examples(context), seeds=_seeds(context))


def fig06(context: Context) -> Result:
    """5 features of each of 10 categories of 200; drawn evenly, and with a long tail."""
    panels = {
        "10 categories, 5 of 200 each, even": Stream(2000, 5, 2.0, "uniform", 10),
        "10 categories, long tail": Stream(2000, 5, 2.0, "exponential", 10),
    }
    return _panels(context, panels, RIVALS, examples(context), seeds=_seeds(context))


def table1_ten_million(context: Context) -> Result:
    """Table 1's columns of ten million examples: one seed, settings as chosen at a million; no sampled VB."""
    n, few = (20_000, 10_000) if context.quick else (10_000_000, 1_000_000)
    figure = canvas(12.0, 4.6)
    numbers: dict[str, Any] = {"panels": {}}
    names = ["sgd", "adf", "dimgauss", "gauss", "approx", "stack"]
    for k, (ax, (title, stream)) in enumerate(zip(figure.subplots(1, 2), _settings_of_table_1().items(), strict=True)):
        found = regret.compare(stream, names, context, n, 1, title, tuned_at=few)
        paper = {name: values[k] for name, values in AT_TEN_MILLION.items() if name in names}
        numbers["panels"][title] = found | {"paper_r_T_at_ten_million": paper}
        regret.draw_table(ax, found, paper, title, size=10_000_000)
    return Result(figure, numbers)


def variants(context: Context) -> Result:
    """The paper's other updates: (17), (18), (42)-(46), batches (47)-(48), Taylor's VB; the settings of Table 1."""
    return _panels(context, _settings_of_table_1(), VARIANTS, examples(context) // 10, seeds=_seeds(context))


def priors(context: Context) -> Result:
    """Regret by the prior's standard deviation, of weights from three laws of one standard deviation; and `auto`."""
    n = examples(context) // 4
    figure = canvas(13.5, 4.6)
    numbers: dict[str, Any] = {"panels": {}}
    for i, (ax, (title, law)) in enumerate(zip(figure.subplots(1, 3, sharey=True), _LAWS.items(), strict=True)):
        stream = Stream(200, 20, 1.0, law=law)
        found = regret.by_prior(stream, ["gauss", "dimgauss", "adf"], PRIORS, "stack", context, n, _seeds(context))
        numbers["panels"][title] = found
        regret.draw_by_prior(ax, found, title, label_y=i == 0)
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return Result(figure, numbers)


_LAWS = {"normal weights": "normal", "uniform weights": "uniform", "two widths, 0.25 and 1.39": "two"}


def _panels(
    context: Context, streams: dict[str, Stream], names: list[str], n: int, columns: int = 2, seeds: int = 1
) -> Result:
    found = {title: regret.compare(stream, names, context, n, seeds, title) for title, stream in streams.items()}
    return Result(draw_panels(found, columns), {"panels": found})


def draw_panels(found: dict[str, Any], columns: int = 2) -> Any:
    """Draw what `regret.compare` found, a panel each."""
    rows = -(-len(found) // columns)
    figure = canvas(1.0 + 5.0 * columns if columns < 3 else 13.0, 1.2 + 3.6 * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for i, (ax, (title, panel)) in enumerate(zip(axes, found.items(), strict=True)):
        regret.draw(ax, panel, title, label_y=i % columns == 0)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure
