"""The variational objective of a factor Gaussian and its gradient, term by term; never a D×D array.

The belief is q = N(c, FF' + Ψ), Ψ = exp γ, and what is minimised is

    E log q - E log p(θ) - E log p(data | θ),      factor-analysis (2.15).

With A = Ψ⁻¹F, M = I + F'A and C = AM⁻¹ (which is (FF' + Ψ)⁻¹F), the thesis's (5.21) -A + CB' is -C, since
M⁻¹B = I - M⁻¹, and (5.25) is -½ + ½ sum(C ⊙ F): nothing large cancels.

Variables are ``mean`` c (D,), ``factors`` F' (K, D) and ``log_psi`` γ (D,), or a slice of the parameters of each.
Factors are held as F': every operation then runs along the parameters. All that couples the parameters are
the K×K matrix F'A and sums; given those, gradients are had for any slice of them, which is how
:mod:`gaussfold.deep.variational` walks through networks that are larger than the cache.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from gaussfold.deep.types import Variables

_FEW = 3
"""Up to so many factors, matrices of K×K are inverted number by number."""
_LONG = 1 << 12
"""Parameters from which a sum over rows is written as a product."""


def _std(variables: Variables) -> jax.Array:
    """√ψ; whatever else is needed of ψ comes from it, so that one exponential is taken."""
    return jnp.exp(0.5 * variables["log_psi"])


def _scaled(variables: Variables) -> jax.Array:
    """A' = F'Ψ⁻¹."""
    return variables["factors"] * _std(variables) ** -2


def _over_rows(array: jax.Array) -> jax.Array:
    """Sum over the first axis of (rows, D), as a product where rows are long.

    XLA (of jaxlib 0.10) leaves ``sum(axis=0)`` to YNNPACK, which takes several times as long for some shapes: 2×2¹⁵,
    3×2¹⁴ and 5×2¹³ among them, which are blocks of ours. Short rows are summed faster than multiplied.
    """
    return jnp.ones(array.shape[0], array.dtype) @ array if array.shape[-1] > _LONG else array.sum(axis=0)


def gram(variables: Variables) -> jax.Array:
    """F'Ψ⁻¹F, (K, K): a sum over parameters."""
    return _scaled(variables) @ variables["factors"].T


def inverted(gram: jax.Array) -> tuple[jax.Array, jax.Array]:
    """M⁻¹ and log|M| for M = I + F'Ψ⁻¹F."""
    rank = gram.shape[0]
    identity = jnp.eye(rank, dtype=gram.dtype)
    if rank == 0:
        return identity, jnp.zeros((), gram.dtype)
    if rank <= _FEW:
        return _inverted_in_numbers(identity + gram)
    lower = jnp.linalg.cholesky(identity + gram)
    return jax.scipy.linalg.cho_solve((lower, True), identity), 2.0 * jnp.log(jnp.diagonal(lower)).sum()


def _inverted_in_numbers(M: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The same by Cholesky's method written out: for few factors, calling LAPACK takes longer than the arithmetic."""
    every = range(M.shape[0])
    L = _cholesky_in_numbers(M)
    X = _inverse_of_lower(L)
    rows = [jnp.stack([sum(X[k][i] * X[k][j] for k in range(max(i, j), len(every))) for j in every]) for i in every]
    return jnp.stack(rows), 2.0 * sum(jnp.log(L[j][j]) for j in every)


def _cholesky_in_numbers(M: jax.Array) -> list[list[jax.Array]]:
    every = range(M.shape[0])
    L: list[list[jax.Array]] = [[0.0 for _ in every] for _ in every]
    for j in every:
        L[j][j] = jnp.sqrt(M[j, j] - sum(L[j][k] ** 2 for k in range(j)))
        for i in range(j + 1, len(every)):
            L[i][j] = (M[i, j] - sum(L[i][k] * L[j][k] for k in range(j))) / L[j][j]
    return L


def _inverse_of_lower(L: list[list[jax.Array]]) -> list[list[jax.Array]]:
    every = range(len(L))
    X: list[list[jax.Array]] = [[0.0 for _ in every] for _ in every]
    for j in every:
        X[j][j] = 1.0 / L[j][j]
        for i in range(j + 1, len(every)):
            X[i][j] = -sum(L[i][k] * X[k][j] for k in range(j, i)) / L[i][i]
    return X


def entropy_gradient(variables: Variables, inverse: jax.Array) -> Variables:
    """Of E log q: (5.5), (5.21), (5.25); ``inverse`` is M⁻¹."""
    C = inverse @ _scaled(variables)
    to_log_psi = -0.5 + 0.5 * _over_rows(C * variables["factors"])
    return {"mean": jnp.zeros_like(variables["mean"]), "factors": -C, "log_psi": to_log_psi}


def entropy_term(variables: Variables) -> tuple[jax.Array, Variables]:
    """E log q up to a constant, (5.4), and its gradient."""
    inverse, log_det = inverted(gram(variables))
    return -0.5 * (variables["log_psi"].sum() + log_det), entropy_gradient(variables, inverse)


def prior_value(variables: Variables, precision: jax.Array, prior_mean: jax.Array) -> jax.Array:
    """-E log p(θ) up to a constant for p = N(prior_mean, 1/precision): (5.9), (5.10); a sum over parameters."""
    away, F = variables["mean"] - prior_mean, variables["factors"]
    return 0.5 * (precision * (away * away + _over_rows(F * F) + _std(variables) ** 2)).sum()


def prior_gradient(variables: Variables, precision: jax.Array, prior_mean: jax.Array) -> Variables:
    """Of :func:`prior_value`: (5.11), (5.12), (5.26)."""
    return {
        "mean": precision * (variables["mean"] - prior_mean),
        "factors": precision * variables["factors"],
        "log_psi": 0.5 * precision * _std(variables) ** 2,
    }


def prior_term(variables: Variables, precision: jax.Array, prior_mean: jax.Array) -> tuple[jax.Array, Variables]:
    """Value and gradient."""
    return prior_value(variables, precision, prior_mean), prior_gradient(variables, precision, prior_mean)


def networks(variables: Variables, h: jax.Array, z: jax.Array) -> jax.Array:
    """θ = c + F h + √ψ z for each draw: (5.14)."""
    return variables["mean"] + h @ variables["factors"] + _std(variables) * z


def likelihood_gradient(variables: Variables, gradient: jax.Array, h: jax.Array, z: jax.Array) -> Variables:
    """Gradient of the likelihood term from those at each network, (L, D): (5.16), (5.17), (5.27)."""
    share = gradient / gradient.shape[0]
    scale = 0.5 * _std(variables)
    return {"mean": _over_rows(share), "factors": h.T @ share, "log_psi": scale * _over_rows(share * z)}


def add(*gradients: Variables) -> Variables:
    """Sum of gradients, block by block."""
    return {name: sum(each[name] for each in gradients) for name in gradients[0]}
