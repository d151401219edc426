"""What is predicted of rows, and how it is written."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from gaussfold.types import Array


class Told(Protocol):
    """Predictions of some rows."""

    def columns(self, binary: bool) -> dict[str, Any]:
        """As they are written to a file."""
        ...

    def line(self) -> str:
        """What a line of progress says of the first row."""
        ...


class Prediction(NamedTuple):
    """Per row: mean and standard deviation of the label (weights integrated out), and of x'θ."""

    label: Array
    label_std: Array
    mean: Array
    std: Array

    def columns(self, binary: bool) -> dict[str, Any]:
        """As they are written: a probability says all about a binary label."""
        label = {"probability": self.label} if binary else {"prediction": self.label, "prediction_std": self.label_std}
        return {**label, "mean": self.mean, "std": self.std}

    def line(self) -> str:
        """Of the first row: the label, and how far off the latent may be."""
        return f"{short(self.label[0])}  {short(self.std[0])}"


class ClassPrediction(NamedTuple):
    """Per row: probabilities (n, K) of the classes, weights integrated out, and mean and deviation of the latents."""

    classes: tuple[str, ...]
    probability: Array
    mean: Array
    std: Array

    @property
    def label(self) -> np.ndarray:
        """The most probable class."""
        return np.asarray(np.array(self.classes, dtype=object)[self.probability.argmax(axis=1)])

    def columns(self, binary: bool) -> dict[str, Any]:
        """As they are written: the class, and a probability for each."""
        del binary
        told = {f"probability_{name}": self.probability[:, k] for k, name in enumerate(self.classes)}
        return {"prediction": self.label.tolist(), **told}

    def line(self) -> str:
        """Of the first row: the most probable class, and how probable that is."""
        return f"{self.label[0]:>8.8}  {self.probability[0].max():8.4f}"


def short(value: float) -> str:
    """Write a number in eight characters."""
    return f"{value:8.4f}" if abs(value) < 1000.0 else f"{value:8.3g}"
