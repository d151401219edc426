"""One step of VIFA (factor-analysis, Algorithm 3), in two passes over the factors.

The first pass reads them for the networks to look at and for the K×K matrix of the entropy; the second computes
gradients and moves, block by block, in place. A step that is not finite is known between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import jax
import jax.numpy as jnp

from gaussfold.deep import blocks, evidence, objective, scales, steps
from gaussfold.deep.batches import total
from gaussfold.deep.draws import DRAWS
from gaussfold.deep.training import Taken, kept
from gaussfold.deep.trees import Layout
from gaussfold.deep.types import Batch, Hyper, Inner, LogLikelihoodFunction, Tree, Variables

AT_ONCE = 1 << 25
"""Above this many numbers, the networks of a step are drawn one after the other."""
_LARGE = 1 << 13
"""Random numbers of larger networks are drawn in multiples of this."""
BLOCK = 1 << 17
"""Numbers of mean, factors and log_psi that are moved together."""
LONGEST = 1 << 14
"""Parameters that are moved together at most."""

PrecisionAndMean: TypeAlias = tuple[jax.Array, jax.Array]
"""Of the prior."""
Gradient: TypeAlias = Callable[[Variables, Tree], Variables]
"""Of a slice of the variables, from the same slice of arrays that belong to them."""


@dataclass(frozen=True)
class VIFAProgram:
    """One step, with L networks side by side."""

    log_likelihood: LogLikelihoodFunction
    layout: Layout
    rank: int
    n_samples: int
    shared: bool
    samples: str
    optimizer: steps.Steps
    averaging: bool
    learning_prior: bool = False

    def draw(self, hyper: Hyper, step: jax.Array) -> Tree:
        """The L vectors (h, z) of a step, or only their key where they are too large to hold."""
        key = jax.random.fold_in(jax.random.wrap_key_data(hyper["key"]), step)
        if self._one_by_one:
            return jax.random.key_data(key)
        return jax.vmap(lambda number: self._draw(key, number, jnp.minimum(step, 0)))(jnp.arange(self.n_samples))

    @property
    def pairs(self) -> int:
        """Draws that look at one batch: both of an antithetic pair, so that the batch's own noise cancels in them."""
        return 2 if self.samples == "antithetic" else 1

    @property
    def _one_by_one(self) -> bool:
        return self.n_samples > 1 and self.n_samples * self.layout.dim > AT_ONCE

    @property
    def _block(self) -> int:
        """Parameters that are moved together: a power of two, so that rows of a block begin where they should."""
        if not self.optimizer.elementwise:
            return self.layout.dim
        return min(LONGEST, 1 << max(0, (BLOCK // (self.rank + 2)).bit_length() - 1))

    def _draw(self, key: jax.Array, number: jax.Array, zero: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draw ``number``: h and z. ``zero`` is 0 in a way that the compiler cannot know.

        XLA makes random numbers several times more slowly for odd sizes and at offsets that it knows to be odd, and
        makes them anew for whoever reads them unless a condition stands between.
        """
        size, dtype = self.rank + self.layout.dim, self.layout.dtype
        make = partial(DRAWS[self.samples], key, number, self.n_samples)
        if size <= _LARGE:
            both = make(size, dtype)
            return both[: self.rank], both[self.rank :]
        drawn = -(-size // _LARGE) * _LARGE  # the first numbers are the same, whatever the size
        both = jax.lax.cond(zero == 0, lambda: make(drawn, dtype), lambda: jnp.zeros(drawn, dtype))
        return both[: self.rank], jax.lax.dynamic_slice_in_dim(both, self.rank + zero, self.layout.dim)

    def _loss(self, theta: jax.Array, batch: Batch, scale: jax.Array) -> jax.Array:
        return -scale * total(self.log_likelihood, self.layout.unflatten(theta), batch).astype(theta.dtype)

    def look(
        self, variables: Variables, batches: Batch, draws: Tree, scale: jax.Array
    ) -> tuple[jax.Array, jax.Array, Tree, Gradient]:
        """-E log p(data | θ), averaged over the draws, and how its gradient comes about.

        Returns the value, the sum of squares of all gradients at the networks, arrays with D columns, and a function
        that makes the gradient of a slice of the variables from the same slice of those arrays.
        """
        look = jax.value_and_grad(self._loss)
        if not self._one_by_one:
            h, z = draws
            batch = jax.tree.map(
                lambda a: a[0] if self.shared else jnp.tile(a, (self.pairs,) + (1,) * (a.ndim - 1)), batches
            )
            thetas = objective.networks(variables, h, z)
            values, slopes = jax.vmap(look, in_axes=(0, None if self.shared else 0, None))(thetas, batch, scale)

            def gradient(part: Variables, arrays: Variables) -> Variables:
                return objective.likelihood_gradient(part, arrays["slopes"], h, arrays["z"])

            return values.mean(), jnp.vdot(slopes, slopes), {"slopes": slopes, "z": z}, gradient
        key = jax.random.wrap_key_data(draws)

        def add(number: jax.Array, sums: Tree) -> Tree:
            h, z = (part[None] for part in self._draw(key, number, jnp.minimum(number, 0)))
            batch = jax.tree.map(lambda a: a[0 if self.shared else number % len(a)], batches)
            value, slope = look(objective.networks(variables, h, z)[0], batch, scale)
            gradient = objective.likelihood_gradient(variables, slope[None], h, z)
            return sums[0] + value, sums[1] + jnp.vdot(slope, slope), objective.add(sums[2], gradient)

        zero = jnp.zeros((), self.layout.dtype)
        value, square, sums = jax.lax.fori_loop(
            0, self.n_samples, add, (zero, zero, jax.tree.map(jnp.zeros_like, variables))
        )
        share = 1.0 / self.n_samples
        return share * value, square, sums, lambda _, sums: jax.tree.map(lambda a: share * a, sums)

    def likelihood_term(
        self, variables: Variables, batches: Batch, draws: Tree, scale: jax.Array
    ) -> tuple[jax.Array, Variables]:
        """-E log p(data | θ) and its gradient."""
        value, _, arrays, gradient = self.look(variables, batches, draws, scale)
        return value, gradient(variables, arrays)

    def step(self, inner: Inner, hyper: Hyper, batches: Batch, draws: Tree, step: jax.Array) -> Taken:
        """(5.28)-(5.30)."""
        variables, dim, size = inner["variables"], self.layout.dim, self._block
        fit, square, arrays, to_fit = self.look(variables, batches, draws, hyper["scale"])
        precision, beside = hyper["precision"], {}
        if self.learning_prior:
            look = partial(evidence.renewed, self.layout, variables, hyper["prior_mean"], hyper["evidence"])
            now = inner["prior"]
            beside["prior"] = jax.lax.cond(step % evidence.EVERY == 0, look, lambda now: now, now)
            precision = scales.spread(self.layout, beside["prior"])
        prior = precision, hyper["prior_mean"]

        def sums(block: tuple[Variables, PrecisionAndMean]) -> tuple[jax.Array, jax.Array]:
            part, prior = block
            return objective.gram(part), objective.prior_value(part, *prior)

        gram, penalty = blocks.total(sums, (variables, prior), dim, size)
        inverse, log_det = objective.inverted(gram)
        loss = fit + penalty - 0.5 * (variables["log_psi"].sum() + log_det)
        ok = jnp.isfinite(loss) & jnp.isfinite(square)

        def gradient(part: Variables, others: tuple[Tree, PrecisionAndMean]) -> Variables:
            arrays, prior = others
            terms = to_fit(part, arrays), objective.entropy_gradient(part, inverse)
            return objective.add(*terms, objective.prior_gradient(part, *prior))

        shares = None
        if self.optimizer.clipped:
            found = blocks.total(lambda block: steps.squares(gradient(*block)), (variables, (arrays, prior)), dim, size)
            ok &= jnp.isfinite(sum(found.values()))
            shares = self.optimizer.shares(found, hyper)

        def move(inner: Inner, others: tuple[Tree, PrecisionAndMean]) -> Inner:
            variables = inner["variables"]
            slope = steps.scaled(gradient(variables, others), shares)
            after, memory = self.optimizer.step(slope, inner["optimizer"], variables, hyper, step)
            new = {"variables": after, "optimizer": memory}
            if self.averaging:
                weight = (hyper["average"] + 1.0) / (step + 1.0 + hyper["average"])
                new["average"] = jax.tree.map(lambda old, now: old + weight * (now - old), inner["average"], after)
            return new

        moving = {name: inner[name] for name in inner if name not in beside}
        moved = blocks.rewritten(ok, move, moving, (arrays, prior), dim, size)
        return moved | kept(ok, beside, {name: inner[name] for name in beside}), loss, ok
