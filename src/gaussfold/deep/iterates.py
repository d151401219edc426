"""Iterates of stochastic gradient descent as samples: what SWAG and the factor analysis of iterates look at.

The loss is the mean over examples of minus the log posterior, so learning rates are those of ordinary training. They
are not samples of the posterior, see factor-analysis B.2 and Table B.3; that is why VIFA exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.checks import whole
from gaussfold.deep import steps
from gaussfold.deep.batches import LogLikelihoodFunction, total
from gaussfold.deep.method import Method, spread
from gaussfold.deep.training import kept
from gaussfold.deep.trees import Layout, Tree
from gaussfold.types import Array

_BUFFER = 1 << 22
"""Numbers that wait to be collected."""


@dataclass(frozen=True)
class DescentProgram:
    """A step of gradient descent on the log posterior; after a burn-in, samples are put into a buffer."""

    log_likelihood: LogLikelihoodFunction
    layout: Layout
    optimizer: steps.Steps
    every: int
    windows: bool

    def draw(self, hyper: Any, step: Any) -> Any:  # noqa: ARG002 - a program's signature
        """Nothing is drawn."""
        return ()

    def step(self, inner: Any, hyper: Any, batches: Any, draws: Any, step: Any) -> tuple[Any, Any, Any]:  # noqa: ARG002
        """One step, and every so often a sample: the iterate, or the mean of those since the last."""
        batch = jax.tree.map(lambda a: a[0], batches)

        def loss(theta: Any) -> Any:
            away = theta - hyper["prior_mean"]
            fit = hyper["scale"] * total(self.log_likelihood, self.layout.unflatten(theta), batch).astype(theta.dtype)
            return (0.5 * (hyper["precision"] * away * away).sum() - fit) / hyper["rows"]

        theta = inner["theta"]
        value, slope = jax.value_and_grad(loss)(theta)
        rate = {"rates": {"params": jnp.where(step < hyper["burn_in"], *hyper["rates"])}, "max_norm": hyper["max_norm"]}
        gradient = {"params": slope}
        squares = steps.squares(gradient)
        ok = jnp.isfinite(value) & jnp.isfinite(squares["params"])
        shares = self.optimizer.shares(squares, rate) if self.optimizer.clipped else None
        gradient = steps.scaled(gradient, shares)
        moved, memory = self.optimizer.step(gradient, inner["optimizer"], {"params": theta}, rate, step)
        after = moved["params"]
        position = step - hyper["burn_in"] + 1
        sample, window = after, {}
        if self.windows:
            number = (position - 1) // self.every
            old = jax.tree.map(lambda a: jnp.where(number == inner["window"]["number"], a, 0), inner["window"])
            window = {"window": {"number": number, "count": old["count"] + 1, "sum": old["sum"] + after}}
            sample = window["window"]["sum"] / window["window"]["count"]
        due = (position > 0) & (position % self.every == 0) & ok
        slot = jnp.where(due, inner["emitted"] % len(inner["buffer"]), 0)
        buffer = inner["buffer"].at[slot].set(jnp.where(due, sample, inner["buffer"][slot]))
        new = {"theta": after, "optimizer": memory, "emitted": inner["emitted"] + due}
        # The buffer is written by steps that count only: choosing between two would copy it.
        return kept(ok, new | window, {name: inner[name] for name in new | window}) | {"buffer": buffer}, value, ok


class SGDIterates(Method):
    """Training by gradient descent whose iterates are collected; the parent of SWAG and :class:`FactorIterates`.

    A skipped step (one that is not finite) collects nothing.
    """

    def __init__(
        self,
        log_likelihood: LogLikelihoodFunction,
        params: Tree,
        prior_precision: Any,
        *,
        prior_mean: Any,
        batch_size: int | None,
        optimizer: Any,
        learning_rate: Any,
        burn_in_rate: Any,
        burn_in: int,
        every: int,
        windows: bool,
        max_grad_norm: float | None,
        max_bad_steps: int,
        seed: int,
    ) -> None:
        super().__init__(log_likelihood, params, batch_size=batch_size, max_bad_steps=max_bad_steps, seed=seed)
        self.prior_precision = spread("prior_precision", prior_precision, self.layout, above_zero=True)
        self.prior_mean = spread("prior_mean", prior_mean, self.layout)
        self.optimizer = optimizer
        self._steps, rates = steps.resolve(optimizer, learning_rate, ("params",), max_grad_norm is not None)
        before = rates if burn_in_rate is None else steps.resolve(optimizer, burn_in_rate, ("params",))[1]
        self._rates = (before["params"], rates["params"])
        self._limit = steps.norm_limit(max_grad_norm)
        self.burn_in = whole("burn_in", burn_in, least=0)
        self.every = whole("every", every)
        self.windows = bool(windows)
        self._taken = 0

    @property
    def _slots(self) -> int:
        return max(1, min(1024, _BUFFER // self.layout.dim))

    @property
    def _longest_chunk(self) -> int:
        return 1 << ((self._slots * self.every).bit_length() - 1)

    @property
    def collected(self) -> int:
        """Samples collected so far."""
        return self._taken

    def _program(self) -> DescentProgram:
        return DescentProgram(self.log_likelihood, self.layout, self._steps, self.every, self.windows)

    def _hyper(self, rows: int, size: int) -> dict[str, Any]:
        dtype = self.layout.dtype
        return {
            "precision": self.prior_precision,
            "prior_mean": self.prior_mean,
            "scale": jnp.asarray(rows / size, dtype),
            "rows": jnp.asarray(rows, dtype),
            "rates": tuple(jnp.asarray(rate, dtype) for rate in self._rates),
            "max_norm": jnp.asarray(self._limit, dtype),
            "burn_in": jnp.asarray(self.burn_in, jnp.int32),
        }

    def _initial(self) -> Any:
        inner = {
            "theta": self._centre,
            "optimizer": self._steps.init({"params": self._centre}),
            "buffer": jnp.zeros((self._slots, self.layout.dim), self.layout.dtype),
            "emitted": jnp.zeros((), jnp.int32),
        }
        if self.windows:
            zero = jnp.zeros((), jnp.int32)
            inner["window"] = {"number": zero - 1, "count": zero, "sum": jnp.zeros_like(self._centre)}
        return inner

    def _settings(self) -> dict[str, Any]:
        optimizer = self.optimizer if isinstance(self.optimizer, str) else "optax"
        return {
            "optimizer": optimizer,
            "batch_size": self.batch_size,
            "burn_in": self.burn_in,
            "every": self.every,
            "windows": self.windows,
            "seed": self.seed,
        }

    def _forget(self) -> None:
        self._taken = 0

    def _collect(self, inner: Any) -> None:
        emitted = int(inner["emitted"])
        if emitted == self._taken:
            return
        fresh = np.asarray(inner["buffer"])[np.arange(self._taken, emitted) % self._slots]
        self._take(fresh.astype(np.float64))
        self._taken = emitted

    def _take(self, samples: Array) -> None:
        """Look at new samples, in order, shape (n, D)."""
        raise NotImplementedError

    def _collected(self) -> dict[str, np.ndarray]:
        return {"taken": np.asarray(self._taken)}

    def _recollect(self, arrays: dict[str, np.ndarray]) -> None:
        self._taken = int(arrays["taken"])

    def _enough(self, needed: int) -> None:
        if self._taken < needed:
            msg = (
                f"posterior: {self._taken} samples after {self.steps} steps (burn_in={self.burn_in}, "
                f"every={self.every}), at least {needed} are needed; train longer"
            )
            raise ValueError(msg)
