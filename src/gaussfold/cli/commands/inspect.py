"""``gaussfold inspect``."""

from __future__ import annotations

import json

import numpy as np

from gaussfold.cli.model import StreamModel
from gaussfold.cli.saving import open_model
from gaussfold.data.reading import Document


def inspect(path: str, top: int, as_json: bool) -> int:
    """Show the heaviest, most certain and most uncertain weights of a model."""
    model = open_model(path)
    document = describe(model, top)
    if as_json:
        print(json.dumps(document))
        return 0
    from rich.console import Console
    from rich.table import Table

    console = Console()
    head = document["model"]
    console.print("   ".join(f"{name} [bold]{value}[/bold]" for name, value in head.items()), highlight=False)
    for title in ("heaviest", "most certain", "most uncertain"):
        table = Table(title=title, title_justify="left")
        for name in ("feature", "mean", "std", "mean/std"):
            table.add_column(name, justify="left" if name == "feature" else "right")
        for row in document[title]:
            table.add_row(row["feature"], f"{row['mean']:.4g}", f"{row['std']:.4g}", f"{row['mean'] / row['std']:.1f}")
        console.print(table)
    return 0


def describe(model: StreamModel, top: int) -> Document:
    """Return the model and its outstanding weights, as JSON can hold them."""
    size = 1 << model.reading.bits
    slots = model.used()
    mean, variance, besides = model.shown_weights(slots)
    std = np.sqrt(variance)
    names = model.names or {}

    def rows(order: np.ndarray) -> list[Document]:
        return [
            {
                "feature": names.get(slot, f"slot {slot}") + besides[k],
                "slot": slot,
                "mean": float(mean[k]),
                "std": float(std[k]),
            }
            for k, slot in zip(order[:top].tolist(), slots[order[:top] % max(len(slots), 1)].tolist(), strict=True)
        ]

    head: Document = {
        "examples": model.examples,
        "average_loss": round(model.average_loss, 6) if model.learned else None,
        "bits": model.reading.bits,
        "slots_used": len(slots),
        "prior_std": model.setting.prior_std,
        "likelihood": model.setting.likelihood,
    }
    if model.reading.constant and not model.setting.classes:
        (constant,), (spread,) = model.belief.moments([size])
        head |= {"constant": round(float(constant), 6), "constant_std": round(float(spread) ** 0.5, 6)}
    return {
        "model": head,
        "heaviest": rows(np.argsort(-np.abs(mean), kind="stable")),
        "most certain": rows(np.argsort(std, kind="stable")),
        "most uncertain": rows(np.argsort(-std, kind="stable")),
    }
