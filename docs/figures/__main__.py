"""Draw all, or those that are named: ``python -m docs.figures idea``."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

from docs.figures import choosing, first, idea

DRAWINGS = {
    "first": first.breast_cancer,
    "choosing": choosing.covariance,
    "idea": idea.marginal_site_absorb,
    "implicit": idea.implicit,
    "one-pass": idea.one_pass,
}

if __name__ == "__main__":
    mpl.use("agg")
    mpl.rcParams.update({"savefig.dpi": 130, "axes.spines.top": False, "axes.spines.right": False})
    folder = Path(__file__).resolve().parents[1] / "images"
    folder.mkdir(exist_ok=True)
    for name in sys.argv[1:] or DRAWINGS:
        DRAWINGS[name](folder / f"{name}.png")
        print(folder / f"{name}.png")
