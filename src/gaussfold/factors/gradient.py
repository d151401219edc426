"""Stochastic gradient ascent on the likelihood of a factor analysis model: the thesis's Algorithm 1.

An optimiser is anything with optax's two methods: ``init(params)`` and ``update(grads, state, params)`` returning
(updates, state), where ``grads`` are those of the *negative* log likelihood and updates are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gaussfold import schema
from gaussfold.factors.model import FactorStream, Part, posterior
from gaussfold.registry import Catalogue
from gaussfold.types import Array

Params = dict[str, Array]


# Both have the methods and parameters of an optax optimiser, so that one of those may stand in their place.


@dataclass(frozen=True)
class SGD:
    """Plain steps of ``learning_rate``."""

    learning_rate: float = 1e-3
    name: ClassVar[str] = "sgd"

    def init(self, params: Params) -> dict[str, Array]:  # noqa: ARG002 - optax's signature
        """Nothing to remember."""
        return {}

    def update(
        self,
        grads: Params,
        state: dict[str, Array],
        params: Params | None = None,  # noqa: ARG002 - optax's signature
    ) -> tuple[Params, dict[str, Array]]:
        """-learning_rate · gradient."""
        return {name: -self.learning_rate * grad for name, grad in grads.items()}, state


@dataclass(frozen=True)
class Adam:
    """Kingma and Ba's steps."""

    learning_rate: float = 1e-3
    b1: float = 0.9
    b2: float = 0.999
    epsilon: float = 1e-8
    name: ClassVar[str] = "adam"

    def init(self, params: Params) -> dict[str, Array]:
        """Two moments per parameter, and a clock."""
        moments = {f"{k}_{name}": np.zeros_like(value) for name, value in params.items() for k in ("first", "second")}
        return moments | {"clock": np.zeros(1)}

    def update(
        self,
        grads: Params,
        state: dict[str, Array],
        params: Params | None = None,  # noqa: ARG002 - optax's signature
    ) -> tuple[Params, dict[str, Array]]:
        """Bias-corrected first moment over the root of the second."""
        clock = state["clock"] + 1.0
        fresh, updates = {"clock": clock}, {}
        for name, grad in grads.items():
            first = self.b1 * state[f"first_{name}"] + (1.0 - self.b1) * grad
            second = self.b2 * state[f"second_{name}"] + (1.0 - self.b2) * grad**2
            fresh |= {f"first_{name}": first, f"second_{name}": second}
            root = np.sqrt(second / (1.0 - self.b2 ** clock[0])) + self.epsilon
            updates[name] = -self.learning_rate * first / (1.0 - self.b1 ** clock[0]) / root
        return updates, fresh


OPTIMIZERS: Catalogue[SGD | Adam] = Catalogue("optimizer", (SGD, Adam), also="an object with optax's init and update")


class GradientAscent(FactorStream):
    """Thesis Algorithm 1: F and γ = log ψ follow the gradient of each row's log likelihood, (4.24)-(4.26)."""

    def __init__(self, dim: int, rank: int, *, optimizer: Any = None, warm_up: int = 100, **options: Any) -> None:
        super().__init__(dim, rank, **options)
        self.optimizer = SGD() if optimizer is None else optimizer
        self.warm_up = warm_up
        self.memory: Any = None

    def learn(self, X: Array) -> None:
        """Learn from rows, in order."""
        for x in X:
            d = self._centre(x)
            if self.count > self.warm_up:
                self._step(d)

    def _step(self, d: Array) -> None:
        sigma, gain = posterior(self.F, self.psi)
        m = gain @ d
        spread = self.F @ (sigma + np.outer(m, m))
        to_F = (np.outer(d, m) - spread) / self.psi[:, None]
        residual = d * d - 2.0 * d * (self.F @ m) + np.einsum("ij,ij->i", spread, self.F)
        to_gamma = 0.5 * residual / self.psi - 0.5
        if self.isotropic:
            to_gamma[:] = to_gamma.mean()
        params = self._params()
        if self.memory is None:
            self.memory = self.optimizer.init(params)
        updates, self.memory = self.optimizer.update({"F": -to_F, "gamma": -to_gamma}, self.memory, params)
        self.F = self.F + np.asarray(updates["F"])
        self.psi = np.exp(params["gamma"] + np.asarray(updates["gamma"]))

    def _params(self) -> Params:
        return {"F": self.F, "gamma": np.log(self.psi)}

    def parts(self) -> dict[str, Part]:
        """Everything that was learned, by name."""
        memory = self.memory if isinstance(self.memory, dict) else {}
        return super().parts() | {f"memory_{name}": value for name, value in memory.items()}

    def check(self, state: dict[str, np.ndarray]) -> None:
        """Refuse arrays of a file that do not fit a model of this size, or its optimiser."""
        super().check(state)
        given = schema.part_of(state, "memory_")
        if given:
            needed = {name: np.shape(value) for name, value in self.optimizer.init(self._params()).items()}
            found = {name: value.shape for name, value in given.items()}
            schema.equal("memory", found, needed, "as the optimiser keeps it")
            schema.check(given, [schema.Part(name, shape, "double") for name, shape in needed.items()])

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take over the arrays of :meth:`state`, the optimiser's included."""
        memory = {name.removeprefix("memory_"): value.copy() for name, value in state.items() if "memory_" in name}
        self.memory = None
        super().restore({name: value for name, value in state.items() if "memory_" not in name})
        self.memory = memory or None
