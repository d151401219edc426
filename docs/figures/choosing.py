"""Which covariance: a decision in three questions."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

QUESTION = {"boxstyle": "round,pad=0.5", "fc": "#eef3f8", "ec": "#4a6f94"}
ANSWER = {"boxstyle": "round,pad=0.5", "fc": "#fdf1e5", "ec": "#c66a1b"}
BOXES = (
    (-1.0, 4.0, "More than a few thousand features,\nor rows that are mostly zeros?", QUESTION),
    (-4.4, 1.9, 'covariance="full"\nthe default: all correlations;\nd² numbers, d² work a row', ANSWER),
    (2.4, 1.9, "Are the rows sparse\n(words, clicks, categories)?", QUESTION),
    (0.2, -0.2, 'covariance="diagonal"\none variance a weight;\nwork by nonzero entries', ANSWER),
    (4.6, -0.2, 'covariance="lowrank"\nrank × d numbers;\ndense rows, to millions', ANSWER),
)
ARROWS = ((0, 1, "no"), (0, 2, "yes"), (2, 3, "yes"), (2, 4, "no"))


def covariance(path: Path) -> None:
    """Boxes and arrows."""
    figure, axis = plt.subplots(figsize=(9, 4.6), layout="constrained")
    for start, end, word in ARROWS:
        (x0, y0, *_), (x1, y1, *_) = BOXES[start], BOXES[end]
        axis.annotate("", (x1, y1 + 0.62), (x0, y0 - 0.5), arrowprops={"arrowstyle": "-|>", "color": "#444444"})
        side = "right" if x1 < x0 else "left"
        axis.text(
            (x0 + x1) / 2 + (0.4 if side == "left" else -0.4), (y0 + y1) / 2 + 0.05, word, ha=side, style="italic"
        )
    for x, y, text, box in BOXES:
        axis.text(x, y, text, ha="center", va="center", fontsize=10.5, bbox=box)
    axis.set(xlim=(-6.2, 6.4), ylim=(-1.0, 4.7))
    axis.axis("off")
    figure.savefig(path)
    plt.close(figure)
