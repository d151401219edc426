"""The variational objective of a factor Gaussian and its gradient, term by term; never a D×D array.

The belief is q = N(c, FF' + Ψ), Ψ = exp γ, and what is minimised is

    E log q - E log p(θ) - E log p(data | θ),      factor-analysis (2.15).

With A = Ψ⁻¹F, M = I + F'A and C = AM⁻¹ (which is (FF' + Ψ)⁻¹F), the thesis's (5.21) -A + CB' is -C, since
M⁻¹B = I - M⁻¹, and (5.25) is -½ + ½ sum(C ⊙ F): nothing large cancels.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

Variables = dict[str, Any]
"""``mean`` c (D,), ``factors`` F (D, K), ``log_psi`` γ (D,)."""


def _explained(variables: Variables) -> tuple[Any, Any]:
    """C = (FF' + Ψ)⁻¹F and log|M|, through the K×K matrix M."""
    F = variables["factors"]
    A = F * jnp.exp(-variables["log_psi"])[:, None]
    M = jnp.eye(F.shape[1], dtype=F.dtype) + F.T @ A
    lower = jnp.linalg.cholesky(M)
    inverse = jax.scipy.linalg.cho_solve((lower, True), jnp.eye(F.shape[1], dtype=F.dtype))
    return A @ inverse, 2.0 * jnp.log(jnp.diagonal(lower)).sum()


def entropy_term(variables: Variables) -> tuple[Any, Variables]:
    """E log q up to a constant, and its gradient: (5.4), (5.5), (5.21), (5.25)."""
    log_psi, F = variables["log_psi"], variables["factors"]
    to_mean = jnp.zeros_like(variables["mean"])
    if F.shape[1] == 0:
        flat = jnp.full_like(log_psi, -0.5)
        return -0.5 * log_psi.sum(), {"mean": to_mean, "factors": F, "log_psi": flat}
    C, log_det = _explained(variables)
    to_log_psi = -0.5 + 0.5 * (C * F).sum(axis=1)
    return -0.5 * (log_psi.sum() + log_det), {"mean": to_mean, "factors": -C, "log_psi": to_log_psi}


def prior_term(variables: Variables, precision: Any, prior_mean: Any) -> tuple[Any, Variables]:
    """-E log p(θ) up to a constant, and its gradient, for p = N(prior_mean, 1/precision): (5.9)-(5.12), (5.26)."""
    away = variables["mean"] - prior_mean
    F, psi = variables["factors"], jnp.exp(variables["log_psi"])
    weight = jnp.broadcast_to(precision, psi.shape)
    value = 0.5 * (weight * (away * away + (F * F).sum(axis=1) + psi)).sum()
    return value, {"mean": weight * away, "factors": weight[:, None] * F, "log_psi": 0.5 * weight * psi}


def networks(variables: Variables, h: Any, z: Any) -> Any:
    """θ = c + F h + √ψ z for each draw: (5.14)."""
    return variables["mean"] + h @ variables["factors"].T + jnp.exp(0.5 * variables["log_psi"]) * z


def likelihood_gradient(variables: Variables, gradient: Any, h: Any, z: Any) -> Variables:
    """Gradient of the likelihood term from those at each network, (L, D): (5.16), (5.17), (5.27)."""
    share = gradient / gradient.shape[0]
    scale = 0.5 * jnp.exp(0.5 * variables["log_psi"])
    return {"mean": share.sum(axis=0), "factors": share.T @ h, "log_psi": scale * (share * z).sum(axis=0)}


def add(*gradients: Variables) -> Variables:
    """Sum of gradients, block by block."""
    return {name: sum(each[name] for each in gradients) for name in gradients[0]}
