"""What can be run, what a run is told, and what it hands back."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
ORACLES = Path(__file__).resolve().parents[2] / "shared" / "oracles"


@dataclass(frozen=True)
class Result:
    """A picture and the numbers in it (anything ``json`` can write, plus NumPy arrays and scalars)."""

    figure: Any
    numbers: dict[str, Any]


def _silent(items: Iterable[T], _description: str) -> Iterator[T]:
    yield from items


@dataclass(frozen=True)
class Context:
    """How to run: at full size or quickly, on whose data, and how to tell the user that time passes.

    Attributes
    ----------
    quick : bool
        Fewer seeds and coarser grids, for tests.
    full : bool
        The papers' longest runs: hours instead of minutes.
    oracles : Path or None
        Folder of the authors' data; ``None`` draws our own.
    track : callable
        ``track(items, description)`` yields the items and moves a bar.
    """

    quick: bool = False
    full: bool = False
    oracles: Path | None = None
    track: Callable[[Iterable[Any], str], Iterator[Any]] = field(default=_silent)

    @property
    def n_replicates(self) -> int:
        """Data sets over which an ordering is counted, beside the one that is drawn."""
        return 3 if self.quick else 40


@dataclass(frozen=True)
class Experiment:
    """A name on the command line, and the function behind it (imported when it runs)."""

    name: str
    title: str
    target: str

    def run(self, context: Context) -> Result:
        """Import the module and make the figure."""
        module, function = self.target.split(":")
        run: Callable[[Context], Result] = getattr(importlib.import_module(module), function)
        return run(context)


_KL = "data, KL over the stream, ellipses over the true posterior"
_OVER_TIME = "data, KL, and the ellipses as the stream goes on"
_RVGA = (
    ("the logistic function and the inverse probit, and their derivatives", "functions:fig01"),
    ("the quadratic bounds behind the QKF", "functions:fig02"),
    (f"{_KL}: σ0 = 1, ‖μ0‖ = 0.1", "posteriors:fig03"),
    (f"{_KL}: σ0 = 10, ‖μ0‖ = 1", "posteriors:fig04"),
    (f"{_KL}: σ0 = 100, ‖μ0‖ = 10", "posteriors:fig05"),
    (f"{_KL}: separable inputs, σ0 = 10", "posteriors:fig06"),
    ("KL in d = 30, 70, 100 with a sharp prior, σ0 = 1", "dimensions:fig07"),
    ("KL in d = 30, 70, 100 with a flat prior, σ0 = 30", "dimensions:fig08"),
    ("KL in d = 100 for separation s = 1, 3, 5, σ0 = 10", "dimensions:fig09"),
    ("KL in d = 100 for conditioning c = 0, 1, 2, σ0 = 10", "dimensions:fig10"),
    ("iso-probability maps of the integrated prediction", "predictions:fig11"),
    ("the two functions f, g whose root is the implicit update", "roots:fig12"),
    ("shrinking bounds and oscillating fixed-point iterations", "roots:fig13"),
    (f"{_OVER_TIME}: s = 2", "posteriors:fig14"),
    (f"{_OVER_TIME}: s = 5", "posteriors:fig15"),
    (f"{_OVER_TIME}: s = 10", "posteriors:fig16"),
)

EXPERIMENTS: dict[str, Experiment] = {
    f"rvga-fig{number}": Experiment(f"rvga-fig{number}", f"R-VGA figure {number}: {title}", f"experiments.rvga.{to}")
    for number, (title, to) in enumerate(_RVGA, start=1)
}

_SPARSE = (
    ("table1", "seconds and regret / log T, 20 and 40 of 200 features active", "table1"),
    ("fig1", "regret over log t, 20 and 40 of 200 features active", "fig01"),
    ("fig2", "8 million features with a long tail; real data", "fig02"),
    ("fig3", "the logistic and the normal distribution", "fig03"),
    ("fig4", "regret for 5, 20, 40 active features and weights of std 1, 2, 3", "fig04"),
    ("fig5", "regret with values in [0, 1], and with 2000 features", "fig05"),
    ("fig6", "regret with categories, even and with a long tail", "fig06"),
    ("table1-ten-million", "regret / log T after ten million examples", "table1_ten_million"),
    ("variants", "the paper's other updates: one step, peak height, batches, Taylor's VB", "variants"),
    ("priors", "regret by the width of the prior, for weights of three laws", "priors"),
)
EXPERIMENTS |= {
    f"sparse-{name}": Experiment(f"sparse-{name}", f"Sparse online {name}: {title}", f"experiments.sparse.figures:{to}")
    for name, title, to in _SPARSE
}

# A line for each experiment, by paper.
_LOWRANK = {
    "lrvga-fig1": ("L-RVGA figure 1: covariances of streams, KL along the way", "covariances:fig1"),
    "lrvga-fig2": ("L-RVGA figure 2: linear regression for several ranks", "regressions:fig2"),
    "lrvga-fig3": ("L-RVGA figure 3: logistic regression for several ranks", "regressions:fig3"),
    "lrvga-fig4": ("L-RVGA figure 4: logistic regression from samples, prior std 1, 2, 3", "sampled:fig4"),
    "lrvga-fig5": ("L-RVGA figure 5: mirror-prox and the others on ten points", "mirror_prox:fig5"),
    "lrvga-table1": ("L-RVGA table 1: time and memory of factor analysis", "tables:table1"),
    "lrvga-table2": ("L-RVGA table 2: time and memory of linear regression", "tables:table2"),
    "lrvga-table3": ("L-RVGA table 3: ensemble sampling", "regressions:table3"),
    "lrvga-full-rank": ("L-RVGA with p = d: KL by inner loops and by cost", "loops:full_rank"),
    "lrvga-cost": ("Projections: error against cost", "regressions:cost"),
    "thesis-fig4.1": ("Thesis figures 4.1, B.1 and tables B.1, B.2: streaming factor analysis", "streams:fig41"),
}
EXPERIMENTS |= {name: Experiment(name, title, f"experiments.lowrank.{to}") for name, (title, to) in _LOWRANK.items()}

_DEEP = {
    "thesis-fig5.1": ("Thesis figure 5.1 and table 5.1: VIFA and the exact posterior in the plane", "linear:fig51"),
    "thesis-fig5.2": (
        "Thesis figures 5.2, 5.3, B.4, B.5 and table B.6: VIFA and exact ridge",
        "linear:fig52",
    ),
    "thesis-figB.2": ("Thesis figures B.2, B.3 and table B.3: SGD iterates are no posterior samples", "descent:figb2"),
    "thesis-table5.2": ("Thesis table 5.2: predictions on four UCI data sets, 20 splits", "predictions:table52"),
    "deep-digits": (
        "Digits: accuracy, calibration and out-of-distribution entropy",
        "digits:compare",
    ),
    "deep-networks": ("A convolutional and an attention network with a posterior", "digits:architectures"),
}
EXPERIMENTS |= {name: Experiment(name, title, f"experiments.deep.{to}") for name, (title, to) in _DEEP.items()}

_BAYES_NEWTON = {
    "bn-fig1": ("which method becomes which, and at what pace", "links:fig1"),
    "bn-fig2": ("heteroscedastic noise: the posterior under three curvatures", "motorcycle:fig2"),
    "bn-fig3": ("heteroscedastic noise, every method, four folds", "motorcycle:fig3"),
    "bn-fig4": ("amplitude demodulation: a segment and its latents", "demodulation:fig4"),
    "bn-fig5": ("amplitude demodulation, every method, four folds", "demodulation:fig5"),
    "bn-fig6": ("GP regression network: filling in two outputs", "network:fig6"),
    "bn-fig7": ("GP regression network, every method, four data sets", "network:fig7"),
}
EXPERIMENTS |= {
    name: Experiment(name, f"Bayes-Newton {name[3:]}: {title}", f"experiments.bayes_newton.{to}")
    for name, (title, to) in _BAYES_NEWTON.items()
}

_GP = {
    "gp-coal": ("Coal mining disasters: a Poisson rate by Laplace, VI and EP", "coal:run"),
    "gp-banana": ("Banana: sparse classification, inducing inputs and hyperparameters learned", "banana:run"),
    "gp-series": ("A million binary labels in time, and a century of daily counts", "series:run"),
}
EXPERIMENTS |= {name: Experiment(name, title, f"experiments.gp.{to}") for name, (title, to) in _GP.items()}
