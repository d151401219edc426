"""The table of ``docs/gallery.md``, made from the JSON files so that it cannot go stale."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COLUMNS = {
    "ekf": "EKF",
    "qkf": "QKF",
    "explicit": "explicit",
    "implicit": "implicit",
    "exact": "default",
    "laplace": "Laplace",
}
RIVALS = ("explicit", "ekf", "qkf", "laplace", "exact")


def panels(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, numbers) of every panel in the folder that compares the methods by KL, in order."""
    files = sorted(folder.glob("rvga-fig*.json"), key=lambda path: (len(path.stem), path.stem))
    for path in files:
        numbers = json.loads(path.read_text(encoding="utf-8"))
        name = path.stem.removeprefix("rvga-fig")
        if "final_kl_unnormalised" in numbers:
            yield name, numbers
        for panel, inner in numbers.get("panels", {}).items():
            if "final_kl_unnormalised" in inner:
                yield f"{name}, {panel}", inner


def table(folder: Path) -> str:
    """Return the final KLs, the smallest in bold, and how often implicit won on other data sets."""
    rivals = [COLUMNS[key] for key in RIVALS]
    lines = [
        "| figure | "
        + " | ".join(COLUMNS.values())
        + " | data sets | "
        + " | ".join(f"< {name}" for name in rivals)
        + " |",
        "|---|" + "---:|" * (len(COLUMNS) + 1 + len(rivals)),
    ]
    for name, numbers in panels(folder):
        final, counts = numbers["final_kl_unnormalised"], numbers["replicates"]
        best = min(final, key=lambda key: final[key])
        cells = [f"**{final[key]:.5g}**" if key == best else f"{final[key]:.5g}" for key in COLUMNS]
        wins = [str(counts[f"implicit < {key}"]) for key in RIVALS]
        lines.append("| " + " | ".join([name, *cells, str(counts["data sets"]), *wins]) + " |")
    return "\n".join(lines)
