"""A factor analysis model while it learns: mean, factors and noise, and what every method does around its step."""

from __future__ import annotations

import copy
from typing import Self, TypeAlias

import numpy as np

from gaussfold import schema
from gaussfold.types import Array

Part: TypeAlias = Array | int | None
"""What a model is made of: arrays, counts, and what is not there yet."""
STATE = (
    schema.Part("mean", ("d",), "double"),
    schema.Part("F", ("d", "p"), "double"),
    schema.Part("psi", ("d",), "double", positive=True),
    schema.Part("count", (), "whole", low=0),
    schema.Part("waiting", ("rows", "d"), "double", optional=True),
    schema.Part("G", ("p", "p"), "double", symmetric=True, optional=True),
    schema.Part("due", (2,), "double", low=0.0, optional=True),
    schema.Part("started", (), "whole", low=0, high=1, optional=True),
    schema.Part("A", ("d", "p"), "double", optional=True),
    schema.Part("B", ("p", "p"), "double", symmetric=True, optional=True),
    schema.Part("squares", ("d",), "double", low=0.0, optional=True),
    schema.Part("steps", (), "whole", low=0, optional=True),
    schema.Part("window", ("windows", "d", "p + 1"), "double", optional=True),
    schema.Part("window_counts", (2,), "double", low=0.0, optional=True),
)
"""What a model file holds of it; each method has some of the optional ones."""


class FactorStream:
    """x = mean + F h + noise, h ~ N(0, I), noise ~ N(0, diag psi), learned from rows as they come.

    Parameters
    ----------
    dim, rank
        Sizes d and p.
    center
        Whether the mean is learned; otherwise it is zero.
    isotropic
        One noise variance for all (probabilistic PCA).
    start
        Factors to start from (d, p); drawn if not given.
    rng
        For the start.
    """

    def __init__(
        self, dim: int, rank: int, *, center: bool, isotropic: bool, start: Array | None, rng: np.random.Generator
    ) -> None:
        self.center, self.isotropic = center, isotropic
        self.mean = np.zeros(dim)
        self.F = np.linalg.qr(rng.standard_normal((dim, rank)))[0] if start is None else start.copy()
        self.psi = np.ones(dim)
        self.count = 0

    def learn(self, X: Array) -> None:
        """Learn from rows, in order."""
        raise NotImplementedError

    def settled(self) -> FactorStream:
        """The model as it stands, with nothing waiting."""
        return self

    def twin(self) -> Self:
        """One that can go on from here while this one stays as it is."""
        other = copy.copy(self)
        for name, value in self.parts().items():
            if name in vars(self) and isinstance(value, np.ndarray):
                setattr(other, name, value.copy())
        return other

    def _centre(self, x: Array) -> Array:
        """Count one row and return its distance from the mean, which already knows it."""
        self.count += 1
        if not self.center:
            return x
        self.mean += (x - self.mean) / self.count
        return np.asarray(x - self.mean)

    def _share_noise(self) -> None:
        if self.isotropic:
            self.psi[:] = self.psi.mean()

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays that hold everything that was learned."""
        return {name: np.asarray(value).copy() for name, value in self.parts().items() if value is not None}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take over the arrays of :meth:`state`."""
        for name, value in self.parts().items():
            if name not in state:
                setattr(self, name, None)
            elif isinstance(value, int):
                setattr(self, name, int(state[name]))
            else:
                setattr(self, name, np.array(state[name]))

    def check(self, state: dict[str, np.ndarray]) -> None:
        """Refuse arrays of a file that do not fit a model of this size."""
        d, p = self.F.shape
        schema.check(state, STATE, {"d": d, "p": p, "p + 1": p + 1})

    def parts(self) -> dict[str, Part]:
        """Everything that was learned, by the name of its attribute."""
        return {"mean": self.mean, "F": self.F, "psi": self.psi, "count": self.count}


def posterior(F: Array, psi: Array) -> tuple[Array, Array]:
    """Σ = (I + F'Ψ⁻¹F)⁻¹ and ΣF'Ψ⁻¹: the factors' covariance given a row, and how a row gives their mean."""
    C = (F / psi[:, None]).T
    sigma = np.asarray(np.linalg.inv(np.eye(F.shape[1]) + C @ F), dtype=np.float64)
    return sigma, np.asarray(sigma @ C)
