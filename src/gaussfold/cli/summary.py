"""What training tells when it is done."""

from __future__ import annotations

import contextlib
import math
import sys

import numpy as np

from gaussfold.beliefs.diagonal.mixture import PRIOR_GRID
from gaussfold.cli.model import StreamModel
from gaussfold.cli.options import Run
from gaussfold.cli.progressive_loss import LEARNED, LOSS, SEEN, WEIGHT, constant_loss
from gaussfold.data.reading import Document
from gaussfold.data.strings import collision_rate
from gaussfold.types import Array


def summarise(
    model: StreamModel, before: Array, run: Run, skipped: int, seconds: float, squares: float = 0.0
) -> Document:
    """Return a run in numbers; ``before`` are the model's totals when it began, ``squares`` its squared errors."""
    totals = model.totals - before
    summary: Document = {
        "examples": int(totals[SEEN]),
        "learned": 0 if run.test_only else int(totals[LEARNED]),
        "average_loss": average(totals),
        "constant_loss": finite(constant_loss(totals) if model.binary else math.nan),
        "seconds": round(seconds, 6),
        "bad": skipped,
        "passes": run.passes,
        "likelihood": model.setting.likelihood,
        "bits": model.reading.bits,
        "model": run.final,
        **_of_numbers(model, squares, float(totals[WEIGHT])),
        **({"classes": list(model.setting.classes)} if model.setting.classes else {}),
        **({"priors_unused": model.awaited} if model.awaited else {}),
    }
    if not run.test_only:
        used = model.used().size
        summary |= {"slots_used": used, "collision_rate": round(collision_rate(used, model.reading.bits), 6)}
    summary["prior_std"] = model.setting.prior_std
    lanes = model.lanes()
    if lanes:
        summary["lanes"] = {name: round(p, 6) for name, p in lanes.items()}
    elif isinstance(model.setting.prior_std, str):
        weights = np.exp(model.belief.log_weights)
        best = int(weights.argmax())
        summary |= {"prior_std": PRIOR_GRID[best], "prior_probability": round(float(weights[best]), 6)}
    return summary


def average(totals: Array) -> float | None:
    """Mean loss of what was counted; None if nothing was."""
    return finite(totals[LOSS] / totals[WEIGHT] if totals[WEIGHT] else math.nan)


def _of_numbers(model: StreamModel, before: float, weight: float) -> Document:
    """Of labels that are numbers: mean squared error of the predictions, and the noise."""
    if model.setting.labels != "real":
        return {}
    error = (float(model.squares[0]) - before) / weight if weight else math.nan
    noise = model.noise.std if model.setting.learns_noise else model.setting.noise_std
    return {"squared_error": finite(error), "noise_std": noise}


def tell(summary: Document, run: Run) -> None:
    """Print a summary for people."""
    compiling = summary.get("compile_seconds", 0.0)
    working = summary["seconds"] - compiling
    rate = f"{summary['examples'] / working:,.0f} examples/s" if working > 0.0 else "rate unknown"
    once = f", besides {compiling:.2f} s of compilation, once" if compiling else ""
    constant = "" if summary["constant_loss"] is None else f"   (best constant: {summary['constant_loss']:.6f})"
    loss = "none" if summary["average_loss"] is None else f"{summary['average_loss']:.6f}"
    lines = [
        f"examples        {summary['examples']:,} ({summary['learned']:,} learned"
        + (f", {summary['bad']} bad ones skipped)" if summary["bad"] else ")"),
        f"average loss    {loss}{constant}",
        f"seconds         {summary['seconds']:.2f}   ({rate}{once})",
    ]
    lines[2:2] = _more_losses(summary)
    if "slots_used" in summary:
        lines.append(
            f"slots           {summary['slots_used']:,} of 2^{summary['bits']} in use; "
            f"about {summary['collision_rate']:.2%} of the features share theirs"
        )
    lines += _prior_lines(summary)
    if summary["model"] is not None:
        lines.append(f"model           {summary['model']}")
    if summary["examples"] and not summary["learned"] and not run.test_only:
        lines.append("no example had a label, so nothing was learned ('1 |f ...' has one, '1|f ...' a tag)")
    with contextlib.suppress(OSError):  # the model is saved; where nobody can be told, nothing is told
        print("\n".join(["", *lines]), file=sys.stderr, flush=True)


def _more_losses(summary: Document) -> list[str]:
    """What belongs to the average loss: the error of numbers, and what is wrong with several passes."""
    lines = []
    if summary.get("squared_error") is not None:
        lines.append(f"squared error   {summary['squared_error']:.6g}   (noise {summary['noise_std']:.6g})")
    if summary.get("first_pass_loss") is not None:
        honest = f"that of the first pass, {summary['first_pass_loss']:.6f}, is of rows that were new"
        lines.append(f"                over {summary['passes']} passes, so of rows seen before: {honest}")
    return lines


def _prior_lines(summary: Document) -> list[str]:
    """What is believed most, of the priors' widths (or memory) and their stack; nothing where there is one."""
    if "lanes" in summary:
        ordered = sorted(summary["lanes"].items(), key=lambda lane: -lane[1])
        told = [f"{name} {p:.3f}" for name, p in ordered if p >= 0.0005]
        return [f"prior std       auto: {', '.join(told)}"]
    if "prior_probability" not in summary:
        return []
    std, probability = summary["prior_std"], summary["prior_probability"]
    end = {PRIOR_GRID[0]: "smallest", PRIOR_GRID[-1]: "largest"}.get(std)
    beyond = f"; the {end} that is tried, --prior-std takes others" if end and probability > 0.5 else ""
    return [f"prior std       {std:g} (probability {probability:.3f}{beyond})"]


def finite(value: float) -> float | None:
    """Return a number as JSON can hold it; None if it is none."""
    return float(value) if math.isfinite(value) else None
