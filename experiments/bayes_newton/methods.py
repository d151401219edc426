"""Every method of the figures, and a run that keeps its trace."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments import style
from gaussfold import rules
from gaussfold.gp import FirstOrderVI, GaussianProcess

RULES: dict[str, Any] = {
    "newton": rules.Newton(),
    "vi": rules.VI(),
    "pep05": rules.EP(alpha=0.5),
    "pl2": rules.PL2(),
}
COLORS = {"newton": style.ORANGE, "vi": style.BLUE, "pep05": style.GREEN, "pl2": style.PURPLE}
DASHES: dict[str, Any] = {
    "heuristic": (0, (1.2, 1.2)),
    "gaussnewton": "-",
    "quasinewton": (0, (5, 2)),
    "riemann": (0, (5, 1.5, 1, 1.5)),
}
LABELS = {"newton": "Newton", "vi": "VI", "pep05": "PEP ½", "pl2": "PL2"}
ADAM = "vi_firstorder_adam"


def policies(damping: float) -> dict[str, Any]:
    """The curvatures by the oracles' names; B is averaged with the sites, as in the programs behind the figures."""
    return {
        "heuristic": rules.Heuristic(),
        "gaussnewton": rules.GaussNewton(),
        "quasinewton": rules.QuasiNewton(damping, stored="averaged"),
        "riemann": rules.Riemannian(),
    }


def methods(damping: float) -> dict[str, tuple[Any, Any]]:
    """Name to (rule, curvature), in the order of the tables; the first-order baseline has none."""
    table: dict[str, tuple[Any, Any]] = {}
    for rule, object_ in RULES.items():
        for curvature, policy in policies(damping).items():
            if policy.name in object_.curvatures:
                table[f"{rule}_{curvature}"] = (object_, policy)
    table["pl"] = (rules.PL(), rules.Exact())
    table["pl_quasinewton"] = (rules.PL(), policies(damping)["quasinewton"])  # (54)
    table["taylor_eks"] = (rules.Taylor(), rules.Exact())
    table[ADAM] = (None, None)
    return table


def line(name: str) -> dict[str, Any]:
    """How a method is drawn."""
    rule, _, curvature = name.partition("_")
    if rule in COLORS and curvature in DASHES:
        return {"color": COLORS[rule], "ls": DASHES[curvature], "lw": 1.5, "label": f"{LABELS[rule]} {curvature}"}
    special = {
        "pl": (style.VERMILION, "-", "PL"),
        "pl_quasinewton": (style.VERMILION, (0, (5, 2)), "PL quasinewton"),
        "taylor_eks": (style.BLACK, (0, (1.2, 1.2)), "Taylor (EKS)"),
        ADAM: (style.GREY, "-", "first-order VI (Adam)"),
    }[name]
    return {"color": special[0], "ls": special[1], "lw": 1.5, "label": special[2]}


@dataclass
class Trace:
    """What a run leaves behind: scores at some iterations, and when it failed, if it did."""

    iterations: list[int] = field(default_factory=list)
    energy: list[float] = field(default_factory=list)
    nlpd: list[float] = field(default_factory=list)
    rmse: list[float] = field(default_factory=list)
    failed: str = ""

    def final(self, what: str) -> float:
        """The last score before a failure; NaN if there is none."""
        values = getattr(self, what)
        return float(values[-1]) if values else float("nan")


Score = Callable[[GaussianProcess], tuple[float, float]]


def run(
    make: Callable[[Any, Any], GaussianProcess],
    X: Any,
    Y: Any,
    rule: Any,
    policy: Any,
    score: Score,
    last: int,
    marks: int = 30,
) -> tuple[Trace, Any]:
    """Iterate ``last`` times and score at about ``marks`` of them; a failed fit keeps what it had, as a failure."""
    trace = Trace()
    scored = set(np.unique(np.geomspace(1, last, marks).astype(int)).tolist())
    model = make(rules.VI() if rule is None else rule, rules.Heuristic() if policy is None else policy)
    stepper = None
    try:
        for k in range(1, last + 1):
            if k == 1 and rule is not None:
                model.fit(X, Y, iterations=1)
            elif rule is None:
                stepper = FirstOrderVI(model, X, Y) if stepper is None else stepper
                stepper.step()
            else:
                model.step()
            if k in scored:
                nlpd, rmse = score(model)
                values = (model.energy(), nlpd, rmse)
                if not np.isfinite(values[:2]).all():
                    trace.failed = f"iteration {k}: energy {values[0]!r}, NLPD {nlpd!r}"
                    break
                trace.iterations.append(k)
                for store, value in zip((trace.energy, trace.nlpd, trace.rmse), values, strict=True):
                    store.append(float(value))
    except (ValueError, np.linalg.LinAlgError) as error:
        trace.failed = f"iteration {k}: {str(error)[:120]}"
    return trace, model


def authors(folder: Path, problem: str, folds: int = 4) -> dict[str, dict[str, Any]]:
    """The last finite scores of the authors' programs, per method, one per fold; empty without ../shared.

    ``failed`` counts the runs that ended in numbers that are not finite.
    """
    path = folder / "bayesnewton" / f"{problem}_summary.csv"
    found: dict[str, dict[str, Any]] = {}
    if not path.is_file():
        return found
    with path.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if int(row["fold"]) >= folds:
                continue
            scores = found.setdefault(row["method"], {"nlpd": [], "rmse": [], "failed": 0})
            scores["nlpd"].append(float(row["nlpd_last_finite"]))
            scores["failed"] += int(row["n_finite_iters"]) < int(row.get("n_iters_run", 500))  # motorcycle: 500 each
            if row.get("rmse_last_finite"):
                scores["rmse"].append(float(row["rmse_last_finite"]))
    return found


def table(traces: dict[str, list[Trace]], theirs: dict[str, dict[str, Any]], *, rmse: bool) -> dict[str, Any]:
    """Means and spreads (population) over folds, ours beside the authors'.

    A failed fit is a failure: a method with one has no mean, only what its runs had reached before.
    """
    out: dict[str, Any] = {}
    for name, folds in traces.items():
        failed = [t.failed for t in folds if t.failed]
        row: dict[str, Any] = {"failed": failed, "runs": len(folds)}
        for what in ("nlpd", "rmse") if rmse else ("nlpd",):
            values = np.array([t.final(what) for t in folds])
            ended = {"mean": values.mean(), "std": values.std(), "folds": values}
            row[what] = ended if not failed else {"mean": None, "std": None, "before_failure": ended}
            other = theirs.get(name, {}).get(what)
            if other:
                row[f"authors_{what}"] = {"mean": np.mean(other), "std": np.std(other), "folds": other}
                row["authors_failed"] = theirs[name]["failed"]
        out[name] = row
    return out


def convergence(ax: Any, traces: dict[str, list[Trace]], what: str) -> None:
    """Mean over folds against iterations, as far as all folds got."""
    for name, folds in traces.items():
        size = min(len(t.iterations) for t in folds)
        if size:
            mean = np.mean([getattr(t, what)[:size] for t in folds], axis=0)
            ax.plot(folds[0].iterations[:size], mean, **line(name))
            if any(t.failed for t in folds):
                ax.plot(folds[0].iterations[size - 1], mean[-1], "x", color=line(name)["color"], ms=6)
