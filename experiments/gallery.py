"""The tables of ``docs/gallery/rvga.md``, made from the JSON files so that they cannot go stale."""

from __future__ import annotations

import json
import re
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
    "variational": "best Gaussian",
}


def panels(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, numbers) of every panel that compares the methods by KL, in the paper's order."""
    found = {
        int(match[1]): path for path in folder.iterdir() if (match := re.fullmatch(r"rvga-fig(\d+)\.json", path.name))
    }
    for number, path in sorted(found.items()):
        numbers = json.loads(path.read_text(encoding="utf-8"))
        if "final_kl_unnormalised" in numbers:
            yield str(number), numbers
        for panel, inner in numbers.get("panels", {}).items():
            if "final_kl_unnormalised" in inner:
                yield f"{number}, {panel}", inner


def final_kls(folder: Path) -> str:
    """Return the table of KLs after the stream on the data that are drawn, the smallest in bold."""
    rows = []
    for name, numbers in panels(folder):
        final = numbers["final_kl_unnormalised"]
        best = min((key for key in COLUMNS if key != "variational"), key=lambda key: final[key])
        rows.append([name, *(f"**{final[key]:.5g}**" if key == best else f"{final[key]:.5g}" for key in COLUMNS)])
    return _markdown(["figure", *COLUMNS.values()], rows)


def wins(folder: Path) -> str:
    """Return on how many other data sets of the same law implicit, and our default, came out lower."""
    rivals = {
        "implicit": ("explicit", "ekf", "qkf", "laplace"),
        "exact": ("implicit", "explicit", "ekf", "qkf", "laplace"),
    }
    pairs = [(ours, rival) for ours, against in rivals.items() for rival in against]
    rows = []
    for name, numbers in panels(folder):
        counts = numbers["replicates"]
        rows.append([name, *(str(counts["wins"][f"{ours} < {rival}"]) for ours, rival in pairs)])
    return _markdown(["figure", *(f"{COLUMNS[ours]} < {COLUMNS[rival]}" for ours, rival in pairs)], rows)


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
