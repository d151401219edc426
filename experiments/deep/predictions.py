"""Table 5.2: predictions on four UCI data sets, 20 published splits; the search sees training rows only.

The noise and the prior precision of a split are those of a random search with cross-validation on its training rows,
for VIFA with the network; the other posteriors of the network use the same two numbers. Linear regressions take theirs
from the evidence of their training rows (scikit-learn's ``BayesianRidge``).
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import BayesianRidge

from experiments import style
from experiments.deep.predictors import MODELS, Problem, fit_all
from experiments.deep.problems import NAMES, mean_and_error, uci
from experiments.registry import Context, Result
from gaussfold.deep.search import LogUniform, random_search

SPACE = {"noise": LogUniform(0.03, 0.5), "precision": LogUniform(0.2, 10.0)}
TRIALS, EPOCHS = 6, 120.0

NETWORKS = ("VIFA", "SLANG", "SWAG", "online FA", "L-RVGA")
COLUMNS = [*((method, "NN") for method in NETWORKS), ("VIFA", "LR")]

THESIS: dict[str, dict[str, dict[str, list[float]]]] = {
    "NMLL": {
        "energy": {"VIFA-LR": [2.57, 2.57], "VIFA-NN": [2.53, 2.54], "SLANG-NN": [2.13e7, 1.19]},
        "bostonHousing": {"VIFA-LR": [3.07, 2.88], "VIFA-NN": [2.66, 2.65], "SLANG-NN": [2.73, 2.68]},
        "concrete": {"VIFA-LR": [3.77, 3.76], "VIFA-NN": [3.34, 3.33], "SLANG-NN": [3.32, 3.32]},
        "yacht": {"VIFA-LR": [3.65, 3.62], "VIFA-NN": [2.36, 2.38], "SLANG-NN": [1.63, 1.59]},
    },
    "RMSE": {
        "energy": {"VIFA-LR": [3.07, 3.04], "VIFA-NN": [2.90, 2.93], "SLANG-NN": [1.50e3, 1.19]},
        "bostonHousing": {"VIFA-LR": [4.64, 4.31], "VIFA-NN": [3.64, 3.51], "SLANG-NN": [15.87, 6.47]},
        "concrete": {"VIFA-LR": [10.34, 10.27], "VIFA-NN": [6.77, 6.77], "SLANG-NN": [22.27, 9.03]},
        "yacht": {"VIFA-LR": [8.96, 9.07], "VIFA-NN": [2.51, 2.59], "SLANG-NN": [8.03, 1.21]},
    },
}
"""Mean and median over the splits."""


def searched(X: np.ndarray, y: np.ndarray, seed: int, quick: bool, results: Path | None) -> tuple[Any, float]:
    """Best settings of VIFA with the network on these training rows, and the seconds it took to find them."""
    apply = MODELS["NN"].apply
    folds = 3 if len(y) < 600 else 2  # half of a larger data set has as many rows
    held = -(-len(y) // folds)
    kept = len(y) - held

    def evaluate(settings: dict[str, Any], trains: Any, held_outs: Any) -> list[Any]:
        # folds of one size, so that they train side by side: at most one row is left out
        problems = [Problem(train[0][:kept], train[1][:kept], settings["noise"]) for train in trains]
        precisions, seeds = [settings["precision"]] * folds, [seed] * folds
        found = fit_all("VIFA", "NN", problems, precisions, seeds, 10.0 if quick else EPOCHS)
        scores = []
        for problem, posterior, (inputs, targets) in zip(problems, found, held_outs, strict=True):
            if posterior is None:
                return [-np.inf]
            filled = np.resize(np.arange(len(targets)), held)
            scores.append(-problem.score(posterior, apply, inputs[filled], targets[filled])[0][: len(targets)])
        return scores

    search = random_search(
        evaluate,
        SPACE,
        (X, y),
        trials=2 if quick else TRIALS,
        folds=folds,
        together=True,
        seed=seed,
        results=results,
        progress=False,
    )
    return search.best.settings, search.seconds


def evidence(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Noise and prior precision of the linear model, by the evidence of the training rows."""
    scaled = Problem(X, y, 1.0).train
    model = BayesianRidge().fit(scaled.X[:, :-1].astype(float), scaled.y.astype(float))
    return {"noise": float(model.alpha_**-0.5), "precision": float(model.lambda_)}


def chosen(name: str, context: Context, splits: int) -> list[dict[str, Any]]:
    """Settings of every split; searches are kept in ``output/``, so that a long run can be interrupted."""
    data, folder = uci(name), Path("output") / "deep"
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in context.track(range(splits), f"searches, {NAMES[name]}"):
        X, y = (data[key][data["train_idx"][number]] for key in ("X", "y"))
        file = None if context.quick else folder / f"search-{name}-{number}.jsonl"
        best, seconds = searched(X, y, number, context.quick, file)
        rows.append({"NN": best, "LR": evidence(X, y), "search_seconds": seconds})
    return rows


def posteriors(settings: dict[str, list[dict[str, Any]]], context: Context) -> dict[str, dict[str, dict[str, Any]]]:
    """NMLL and RMSE of every posterior on the test rows of each split, and the seconds of a fit; kept like searches."""
    found: dict[str, dict[str, Any]] = {}
    paths = {name: Path("output") / "deep" / f"posteriors-{name}.json" for name in settings}
    for name, path in paths.items():
        found[name] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() and not context.quick else {}
    columns = COLUMNS[:2] if context.quick else COLUMNS
    for method, kind in context.track(columns, "posteriors"):
        for name, path in paths.items():
            if f"{method}-{kind}" not in found[name]:
                found[name][f"{method}-{kind}"] = _column(uci(name), settings[name], method, kind)
                if not context.quick:
                    path.write_text(json.dumps(found[name]), encoding="utf-8")
    return {
        name: {f"{method}-{kind}": each[f"{method}-{kind}"] for method, kind in columns} for name, each in found.items()
    }


def _column(data: dict[str, np.ndarray], settings: list[dict[str, Any]], method: str, kind: str) -> dict[str, Any]:
    numbers = list(range(len(settings)))
    problems = [
        Problem(data["X"][rows], data["y"][rows], each[kind]["noise"])
        for rows, each in zip(data["train_idx"], settings, strict=False)
    ]
    started = time.perf_counter()
    fits = fit_all(method, kind, problems, [each[kind]["precision"] for each in settings], numbers)
    seconds = (time.perf_counter() - started) / len(settings)
    scores = [
        np.full((2, 1), np.nan)
        if fit is None
        else problem.score(fit, MODELS[kind].apply, data["X"][rows], data["y"][rows])
        for problem, fit, rows in zip(problems, fits, data["test_idx"], strict=False)
    ]
    return {
        "NMLL": [float(losses.mean()) for losses, _ in scores],
        "RMSE": [float(np.sqrt(squares.mean())) for _, squares in scores],
        "seconds": [seconds] * len(settings),
    }


def table52(context: Context) -> Result:
    """The whole table."""
    names = ("yacht",) if context.quick else tuple(NAMES)
    splits = 2 if context.quick else 20
    settings = {name: chosen(name, context, splits) for name in names}
    found = posteriors(settings, context)
    table = {
        name: {
            column: {
                metric: {
                    "mean_and_standard_error": mean_and_error(row[metric]),
                    "median": float(np.nanmedian(row[metric])),
                    "failed": int(np.isnan(row[metric]).sum()),
                }
                for metric in ("NMLL", "RMSE")
            }
            | {"seconds_per_fit": row["seconds"][0]}
            for column, row in columns.items()
        }
        for name, columns in found.items()
    }
    seconds = {
        name: sum(row["search_seconds"] for row in settings[name])
        + sum(sum(row["seconds"]) for row in found[name].values())
        for name in names
    }
    numbers = {
        "settings": f"K = 1, M = 10, L = 4, 120 epochs, Adam 0.01; {TRIALS} trials of 3-fold (energy, concrete: "
        "2-fold) cross-validation of the noise and the prior precision on the training rows of each split",
        "table": table,
        "thesis_mean_and_median": THESIS,
        "verdicts": {name: verdict(name, table[name]) for name in table},
        "chosen": settings,
        "splits": found,
        "seconds": seconds,
        "total_seconds": sum(seconds.values()),
    }
    return Result(_figure(found, table), numbers)


def verdict(name: str, columns: dict[str, Any]) -> dict[str, Any]:
    """VIFA-NN against the thesis's, and our best posterior against the better of its VIFA and SLANG."""
    own = columns["VIFA-NN"]
    answer: dict[str, Any] = {
        f"VIFA-NN mean {metric} at or below": own[metric]["mean_and_standard_error"][0]
        <= THESIS[metric][name]["VIFA-NN"][0]
        for metric in ("NMLL", "RMSE")
    }
    for place, what in enumerate(("mean", "median")):
        mine = {
            column: (row["NMLL"]["mean_and_standard_error"][0] if what == "mean" else row["NMLL"]["median"])
            for column, row in columns.items()
        }
        best = min(mine, key=lambda column: mine[column])
        theirs = min(values[place] for values in THESIS["NMLL"][name].values())
        answer[f"best {what} NMLL"] = {
            "ours": best,
            "value": mine[best],
            "thesis": theirs,
            "at or below": mine[best] <= theirs,
        }
    return answer


def _figure(found: dict[str, dict[str, Any]], table: dict[str, Any]) -> Any:
    figure = style.canvas(12.0, 6.4)
    axes = figure.subplots(2, len(found), squeeze=False)
    for column, (name, columns) in enumerate(found.items()):
        for ax, metric in zip(axes[:, column], ("NMLL", "RMSE"), strict=True):
            labels = list(columns)[::-1]
            for at, label in enumerate(labels):
                values = columns[label][metric]
                mean, error = table[name][label][metric]["mean_and_standard_error"]
                ax.plot(values, np.full(len(values), at), ".", ms=4, color=style.LIGHT, zorder=1)
                color = style.BLUE if label.endswith("NN") else style.ORANGE
                ax.errorbar(mean, at, xerr=error, fmt="o", ms=6, color=color, capsize=3, zorder=3)
            centres = [table[name][label][metric]["mean_and_standard_error"][0] for label in labels]
            marks = (("VIFA-NN", style.VERMILION, "-"), ("SLANG-NN", style.PURPLE, "--"), ("VIFA-LR", style.GREY, ":"))
            for label, color, dashes in marks:
                value = THESIS[metric][name][label][0]
                if value < 4.0 * max(centres):
                    ax.axvline(value, color=color, ls=dashes, lw=1.6, label=f"thesis, {label}", zorder=2)
            low, high = min(centres), max(centres)
            ax.set_xlim(low - 0.3 * (high - low), high + 0.5 * (high - low))
            ax.set(yticks=range(len(labels)), yticklabels=labels if column == 0 else [], xlabel=metric)
            if metric == "NMLL":
                ax.set_title(NAMES[name])
    handles, names = axes[0, -1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3)
    return figure
