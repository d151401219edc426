"""A Gaussian with p factors of the precision that takes rows as they come, and is projected once it is full.

With the factors W in rows (2p, D) the belief is N(μ, (Ψ + W'W)⁻¹), and G = WΨ⁻¹W' is carried along. With LL' = I + G,
outputs with Jacobian J have the covariance

    S = JΨ⁻¹J' - Z'Z,      Z = L⁻¹WΨ⁻¹J',

and a site of score g and information RR' moves the mean by (Ψ + W'W)⁻¹J'h, h = (I + RR'S)⁻¹g, all else being C×C. Its
columns R'J become rows of W and border G, at no cost in D. Until 2p rows are in use nothing is lost. Then the p leading
eigenvectors of G stay, and what is dropped stays on the diagonal Ψ, so that the precision's diagonal is exact. One
eigen-decomposition serves p/C rows.
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
    gram: jax.Array
    """G = WΨ⁻¹W', (2p, 2p)."""
    filled: jax.Array
    """Factors in use beyond the first p."""
    noise: jax.Array
    """Variance of the noise, if it is learned."""
    count: jax.Array
    """Rows learned."""
    gains: jax.Array
    """Running mean, for each candidate, of its score minus the first one's; and of the squares: (2, candidates)."""


FIELDS = ("mean", "W", "psi", "gram", "filled", "noise", "count", "gains")
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
    W, gram = jnp.zeros((2 * rank, mean.size), dtype), jnp.zeros((2 * rank, 2 * rank), dtype)
    return Belief(mean, W, prior, gram, zero, zero + noise, zero, gains)


def _projected(belief: Belief, V: jax.Array, gram: jax.Array) -> Belief:
    """The belief with the p best of the factors V, of Gram matrix ``gram``, what is dropped staying on the diagonal."""
    rank = len(belief.W) // 2
    if not rank:
        return belief._replace(psi=belief.psi + (V * V).sum(axis=0))
    _, vectors = jnp.linalg.eigh(gram)
    W = vectors[:, len(V) - rank :].T @ V
    # sums over the few rows as products: XLA's own take ten times as long
    psi = belief.psi + jnp.maximum(jnp.ones(len(V), V.dtype) @ (V * V) - jnp.ones(rank, V.dtype) @ (W * W), 0.0)
    room = jnp.zeros_like(W)
    small = jnp.zeros_like(belief.gram).at[:rank, :rank].set(W @ (W / psi).T)
    return belief._replace(W=jnp.concatenate([W, room]), psi=psi, gram=small, filled=jnp.zeros_like(belief.filled))


def _unchanged(belief: Belief) -> Belief:
    return belief


def aged(belief: Belief, given: Given) -> Belief:
    """Before a row: precision relaxes towards the prior's, or parameters walk at random; neither, and nothing moves."""
    keep = given.forgetting

    def forgotten(belief: Belief) -> Belief:
        psi, W = keep * belief.psi + (1.0 - keep) * given.prior, jnp.sqrt(keep) * belief.W
        return belief._replace(psi=psi, W=W, gram=W @ (W / psi).T)

    def walked(belief: Belief) -> Belief:
        """(Λ⁻¹ + Q)⁻¹ by Woodbury's identity, still of rank p."""
        inverse = 1.0 / belief.psi
        scaled = inverse * belief.W
        diagonal = inverse + given.walk / given.prior
        within = jnp.eye(len(scaled), dtype=scaled.dtype) + belief.W @ scaled.T - scaled @ (scaled / diagonal).T
        W = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(within), scaled / diagonal, lower=True)
        return belief._replace(psi=1.0 / diagonal, W=W, gram=W @ (W * diagonal).T)

    after: Belief = jax.lax.cond(keep < 1.0, forgotten, _unchanged, belief)
    moved: Belief = jax.lax.cond(given.walk > 0.0, walked, _unchanged, after)
    return moved


class Seen(NamedTuple):
    """A row, as the belief sees it: outputs, their Jacobian, how it meets the factors, and their covariance."""

    eta: jax.Array
    J: jax.Array
    own: jax.Array
    """JΨ⁻¹J', (C, C)."""
    across: jax.Array
    """WΨ⁻¹J', (2p, C)."""
    Z: jax.Array
    S: jax.Array

    @property
    def variance(self) -> jax.Array:
        """Of each output."""
        return jnp.maximum(jnp.diagonal(self.S), 0.0)


def seen_by(belief: Belief, eta: jax.Array, J: jax.Array) -> Seen:
    """Outputs and their Jacobian beside what is known of the parameters."""
    scaled = J / belief.psi
    own, across = scaled @ J.T, belief.W @ scaled.T
    Z = jax.scipy.linalg.solve_triangular(_root(belief), across, lower=True)
    return Seen(eta, J, own, across, Z, own - Z.T @ Z)


def _root(belief: Belief) -> jax.Array:
    return jnp.linalg.cholesky(jnp.eye(len(belief.gram), dtype=belief.gram.dtype) + belief.gram)


def absorbed(belief: Belief, row: Seen, score: jax.Array, root: jax.Array) -> Belief:
    """The belief times a site: exactly, and then projected if there is no room for as many factors again."""
    count, rank = root.shape[1], len(belief.W) // 2
    pull = jnp.linalg.solve(jnp.eye(len(score), dtype=root.dtype) + root @ (root.T @ row.S), score)
    back = jax.scipy.linalg.solve_triangular(_root(belief), row.Z @ pull, lower=True, trans=1)
    mean = belief.mean + (row.J.T @ pull - belief.W.T @ back) / belief.psi
    columns, border, corner = root.T @ row.J, row.across @ root, root.T @ row.own @ root
    if count > rank:
        gram = jnp.block([[belief.gram, border], [border.T, corner]])
        return _projected(belief._replace(mean=mean), jnp.concatenate([belief.W, columns]), gram)
    at = rank + belief.filled.astype(int)
    gram = jax.lax.dynamic_update_slice(belief.gram, border, (0, at))
    gram = jax.lax.dynamic_update_slice(gram, border.T, (at, 0))
    gram = jax.lax.dynamic_update_slice(gram, corner, (at, at))
    W = jax.lax.dynamic_update_slice(belief.W, columns, (at, 0))
    full = belief._replace(mean=mean, W=W, gram=gram, filled=belief.filled + count)
    found: Belief = jax.lax.cond(full.filled + count > rank, lambda b: _projected(b, b.W, b.gram), _unchanged, full)
    return found
