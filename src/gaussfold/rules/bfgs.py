"""BFGS for N small matrices at once, kept negative definite by damping or rejection: bayes-newton (48), (55)-(57).

What is stored and updated is a square root, ``-B = R R'``: a rank-one change of R leaves a square, so that B is
negative semi-definite in floating point too, however badly conditioned it becomes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.types import Array

RESOLVED = float(np.sqrt(np.finfo(float).eps))
"""Share of the gradients that their change along a step must reach: a smaller change has lost half of its digits to
rounding, and B would learn noise. As a fit settles, the steps shrink below this and B stays as it is."""


class QuasiNewtonMemory(NamedTuple):
    """What a quasi-Newton site remembers between visits; K is D for newton and D + D² for the others, (50)."""

    root: Array  # (N, K, K): R, with B = -R R'
    point: Array  # (N, K): mean and vec(cov) at the last visit
    gradient: Array  # (N, K): of the target there


def first_memory(rows: int, dim: int, size: int, start: float) -> QuasiNewtonMemory:
    """B₀ = -start I, and a point before the first: mean 0, covariance start I, gradient 0."""
    point = np.zeros((rows, size))
    if size > dim:
        point[:, dim:] = start * np.eye(dim).ravel()
    return QuasiNewtonMemory(
        np.broadcast_to(np.sqrt(start) * np.eye(size), (rows, size, size)).copy(), point, np.zeros((rows, size))
    )


def bfgs_update(memory: QuasiNewtonMemory, point: Array, gradient: Array, damping: float | None) -> Array:
    """The root of -B after the step from the remembered point to this one.

    With s the step and g the change of the gradient: ψ = 1 if s'g ≤ (1-ξ) s'Bs, else ξ s'Bs/(s'Bs - s'g) (the paper's
    (55) prints another numerator); r = ψg + (1-ψ)Bs, where s'r ≤ (1-ξ) s'Bs < 0. Without damping r = g.

    ``B - Bs(Bs)'/(s'Bs) + rr'/(s'r)`` is minus the square of ``R - (r + αRv) v'/(α v'v)`` with v = R's, α² = s'r/s'Bs.
    Rows without a step, and rows where s'r is not below zero by more than its rounding, keep their B.
    """
    R = memory.root
    s = point - memory.point
    g = gradient - memory.gradient
    with np.errstate(over="ignore", invalid="ignore"):  # a row that overflows keeps its B
        v = np.asarray((s[:, None, :] @ R)[:, 0])
        Rv = np.asarray((R @ v[:, :, None])[:, :, 0])  # -Bs
        vv = np.einsum("nk,nk->n", v, v)  # -s'Bs
        sg = np.einsum("nk,nk->n", s, g)
        r = g
        if damping is not None:
            strong = sg > -(1.0 - damping) * vv
            psi = np.where(strong, damping * vv / np.where(strong & (vv + sg > 0.0), vv + sg, 1.0), 1.0)[:, None]
            r = psi * g - (1.0 - psi) * Rv
        sr = np.einsum("nk,nk->n", s, r)
        size = np.linalg.norm(gradient, axis=1) + np.linalg.norm(memory.gradient, axis=1)
        good = (vv > 0.0) & (sr < -RESOLVED * np.linalg.norm(s, axis=1) * size) & np.isfinite(sr + vv)
        alpha = np.sqrt(np.where(good, -sr, 1.0) / np.where(good, vv, 1.0))[:, None]
        change = (r + alpha * Rv) / (alpha * np.where(good, vv, 1.0)[:, None])
        new = np.asarray(R - change[:, :, None] * v[:, None, :])
        good &= np.isfinite(new).all(axis=(1, 2))
    return np.where(good[:, None, None], new, R)


def hessian_block(root: Array, dim: int) -> Array:
    """The first ``dim`` rows and columns of B: minus a sum of squares."""
    top = root[:, :dim]
    return np.asarray(-(top @ np.swapaxes(top, 1, 2)))


def averaged(old: Array, new: Array, weight: float) -> Array:
    """A root of ``(1 - weight) R_old R_old' + weight R_new R_new'``: Cholesky's, or by QR if that has none."""
    wide = np.concatenate([np.sqrt(1.0 - weight) * old, np.sqrt(weight) * new], axis=2)
    turned = np.swapaxes(wide, 1, 2)
    try:
        return np.asarray(np.linalg.cholesky(wide @ turned))
    except np.linalg.LinAlgError:
        return np.asarray(np.swapaxes(np.linalg.qr(turned, mode="r"), 1, 2))
