"""A Gaussian with p factors of the precision that takes rows as they come, and is projected once it is full.

With the factors W in rows (2p, D) the belief is N(μ, (Ψ + W'W)⁻¹), and (I + WΨ⁻¹W')⁻¹ is carried along. Outputs with
Jacobian J then have the covariance

    S = JΨ⁻¹J' - (WΨ⁻¹J')' (I + WΨ⁻¹W')⁻¹ WΨ⁻¹J',

and a site of score g and information RR' moves the mean by (Ψ + W'W)⁻¹J'h, h = (I + RR'S)⁻¹g, all else being C×C. Its
columns R'J become rows of W; the inverse follows by the inverse of a bordered matrix, with K = (I + R'SR)⁻¹ in its new
corner. Until 2p rows are in use nothing is lost. Then the p leading eigenvectors of WΨ⁻¹W' stay, and what is dropped
stays on the diagonal Ψ, so that the precision's diagonal is exact. One eigen-decomposition serves p/C rows.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Belief(NamedTuple):
    """What is carried from row to row."""

    mean: jax.Array
    W: jax.Array
    """Factors, a row each: those of the last projection, and the columns J'R that have come since, (2p, D)."""
    psi: jax.Array
    inner: jax.Array
    """(I + WΨ⁻¹W')⁻¹, (2p, 2p)."""
    filled: jax.Array
    """Factors in use beyond the first p."""
    noise: jax.Array
    """Variance of the noise, if it is learned."""
    count: jax.Array
    """Rows learned."""
    gains: jax.Array
    """Running mean, for each candidate, of its score minus the first one's; and of the squares: (2, candidates)."""


FIELDS = ("mean", "W", "psi", "inner", "filled", "noise", "count", "gains")
"""Of a belief, in order, as model files name them."""


class Given(NamedTuple):
    """What stays the same."""

    prior: jax.Array
    """Precision of the prior, (D,)."""
    forgetting: jax.Array
    walk: jax.Array
    """Variance by which each parameter moves between rows, in units of its prior's."""
    robust: jax.Array


def start(mean: jax.Array, prior: jax.Array, rank: int, noise: float, candidates: int) -> Belief:
    """The prior, with as many candidates for the width of predictions."""
    dtype = mean.dtype
    zero = jnp.zeros((), dtype)
    gains = jnp.zeros((2, candidates), dtype)
    W, inner = jnp.zeros((2 * rank, mean.size), dtype), jnp.eye(2 * rank, dtype=dtype)
    return Belief(mean, W, prior, inner, zero, zero + noise, zero, gains)


def _inner(W: jax.Array, psi: jax.Array) -> jax.Array:
    return jnp.linalg.inv(jnp.eye(len(W), dtype=psi.dtype) + W @ (W / psi).T)


def _projected(belief: Belief, V: jax.Array) -> Belief:
    """The belief with the p best of the factors V, what is dropped staying on the diagonal."""
    rank = len(belief.W) // 2
    W = jnp.zeros_like(belief.W)
    if rank:
        _, vectors = jnp.linalg.eigh(V @ (V / belief.psi).T)
        W = W.at[:rank].set(vectors[:, len(V) - rank :].T @ V)
    psi = belief.psi + jnp.maximum((V * V).sum(axis=0) - (W * W).sum(axis=0), 0.0)
    return belief._replace(W=W, psi=psi, inner=_inner(W, psi), filled=jnp.zeros_like(belief.filled))


def _unchanged(belief: Belief) -> Belief:
    return belief


def aged(belief: Belief, given: Given) -> Belief:
    """Before a row: precision relaxes towards the prior's, or parameters walk at random; neither, and nothing moves."""
    keep = given.forgetting

    def forgotten(belief: Belief) -> Belief:
        psi, W = keep * belief.psi + (1.0 - keep) * given.prior, jnp.sqrt(keep) * belief.W
        return belief._replace(psi=psi, W=W, inner=_inner(W, psi))

    def walked(belief: Belief) -> Belief:
        """(Λ⁻¹ + Q)⁻¹ by Woodbury's identity, still of rank p."""
        inverse = 1.0 / belief.psi
        scaled = inverse * belief.W
        diagonal = inverse + given.walk / given.prior
        within = jnp.eye(len(scaled), dtype=scaled.dtype) + belief.W @ scaled.T - scaled @ (scaled / diagonal).T
        W = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(within), scaled / diagonal, lower=True)
        return belief._replace(psi=1.0 / diagonal, W=W, inner=_inner(W, 1.0 / diagonal))

    after: Belief = jax.lax.cond(keep < 1.0, forgotten, _unchanged, belief)
    moved: Belief = jax.lax.cond(given.walk > 0.0, walked, _unchanged, after)
    return moved


class Seen(NamedTuple):
    """A row, as the belief sees it: outputs, their Jacobian, how it meets the factors, and their covariance."""

    eta: jax.Array
    J: jax.Array
    across: jax.Array
    """WΨ⁻¹J', (2p, C)."""
    S: jax.Array

    @property
    def variance(self) -> jax.Array:
        """Of each output."""
        return jnp.maximum(jnp.diagonal(self.S), 0.0)


def absorbed(belief: Belief, seen: Seen, score: jax.Array, root: jax.Array) -> Belief:
    """The belief times a site: exactly, and then projected if there is no room for as many factors again."""
    count, rank = root.shape[1], len(belief.W) // 2
    K = jnp.linalg.inv(jnp.eye(count, dtype=root.dtype) + root.T @ seen.S @ root)
    pull = score - root @ (K @ (root.T @ (seen.S @ score)))
    step = (seen.J.T @ pull - belief.W.T @ (belief.inner @ (seen.across @ pull))) / belief.psi
    columns = root.T @ seen.J
    moved = belief._replace(mean=belief.mean + step)
    if count > rank:
        return _projected(moved, jnp.concatenate([belief.W, columns]))
    E = belief.inner @ (seen.across @ root)
    at = rank + belief.filled.astype(int)
    inner = belief.inner + E @ K @ E.T
    inner = jax.lax.dynamic_update_slice(inner, -E @ K, (0, at))
    inner = jax.lax.dynamic_update_slice(inner, -(E @ K).T, (at, 0))
    inner = jax.lax.dynamic_update_slice(inner, K, (at, at))
    W = jax.lax.dynamic_update_slice(belief.W, columns, (at, 0))
    full = moved._replace(W=W, inner=inner, filled=belief.filled + count)
    found: Belief = jax.lax.cond(full.filled + count > rank, lambda b: _projected(b, b.W), _unchanged, full)
    return found
