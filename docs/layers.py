"""Draw docs/layers.png, the picture of the layers: ``python docs/layers.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

LAYERS = [
    ("faces", "#dce9f7", [("cli", 1.0), ("estimators", 1.4), ("deep", 1.0), ("distributed", 1.2), ("data", 1.0)]),
    ("models and scores", "#dce9f7", [("gp", 1.0), ("batch", 1.0), ("metrics", 1.0)]),
    ("where the nouns meet", "#fbe3c8", [("folding: fold", 1.5), ("sweeping: sweep", 1.5), ("lookback", 1.0)]),
    ("the nouns", "#fff3b8", [("beliefs", 1.2), ("dynamics", 1.0), ("rules, at", 1.2), ("likelihoods", 1.2)]),
    ("mathematics", "#dff0d8", [("expectations", 1.0), ("factors", 1.0)]),
    (
        "compiled",
        "#e6dcf2",
        [("engine: families, rules", 1.5), ("dense · sparse · lowrank · kalman", 2.0), ("scalar · simd · text", 1.3)],
    ),
    (
        "under everything",
        "#eeeeee",
        [("linalg", 1.0), ("protocols", 1.2), ("store", 0.9), ("registry", 1.1), ("checks", 1.0), ("types", 0.9)],
    ),
]
WIDTH, HEIGHT, GAP = 10.0, 0.72, 0.34


def draw(path: Path) -> None:
    """One row of boxes per layer, what imports on top of what is imported."""
    figure, axes = plt.subplots(figsize=(10.5, 5.6))
    for k, (title, colour, rooms) in enumerate(reversed(LAYERS)):
        y = k * (HEIGHT + GAP)
        axes.text(-0.15, y + HEIGHT / 2, title, ha="right", va="center", fontsize=10, style="italic", color="#444444")
        unit = (WIDTH - 0.15 * (len(rooms) - 1)) / sum(width for _, width in rooms)
        x = 0.0
        for name, width in rooms:
            box = FancyBboxPatch(
                (x, y), width * unit, HEIGHT, boxstyle="round,pad=0,rounding_size=0.08", fc=colour, ec="#888888"
            )
            axes.add_patch(box)
            axes.text(x + width * unit / 2, y + HEIGHT / 2, name, ha="center", va="center", fontsize=11)
            x += width * unit + 0.15
    top = len(LAYERS) * (HEIGHT + GAP) - GAP
    axes.annotate("", (WIDTH + 0.35, 0.0), (WIDTH + 0.35, top), arrowprops={"arrowstyle": "-|>", "color": "#666666"})
    axes.text(WIDTH + 0.5, top / 2, "imports go down only", rotation=270, va="center", fontsize=10, color="#444444")
    axes.set(xlim=(-2.2, WIDTH + 0.9), ylim=(-0.1, top + 0.1))
    axes.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
