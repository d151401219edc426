"""BFGS for N small matrices at once, kept negative definite by damping or rejection: bayes-newton (48), (55)-(57)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.types import Array

FLAT = 1e-14
"""Curvature along the step that is too small to divide by."""
COSINE = 1e-4
"""How nearly a step may be at right angles to the change that it is divided by.

An update multiplies the condition of B by about 1/cosine². In exact arithmetic B stays negative definite whatever the
angle; in floating point its condition passed 1e16 after some seventy visits to the motorcycle data, small eigenvalues
took the sign of their rounding, and the fit ended. The paper has no such bound.
"""


class QuasiNewtonMemory(NamedTuple):
    """What a quasi-Newton site remembers between visits; K is D for newton and D + D² for the others, (50)."""

    hessian: Array  # (N, K, K): B, negative definite
    point: Array  # (N, K): mean and vec(cov) at the last visit
    gradient: Array  # (N, K): of the target there


def first_memory(rows: int, dim: int, size: int, start: float) -> QuasiNewtonMemory:
    """B₀ = -start I, and a point before the first: mean 0, covariance start I, gradient 0."""
    point = np.zeros((rows, size))
    if size > dim:
        point[:, dim:] = start * np.eye(dim).ravel()
    return QuasiNewtonMemory(
        np.broadcast_to(-start * np.eye(size), (rows, size, size)).copy(), point, np.zeros((rows, size))
    )


def bfgs_update(memory: QuasiNewtonMemory, point: Array, gradient: Array, damping: float | None) -> Array:
    """B after the step from the remembered point to this one.

    With s the step and g the change of the gradient: ψ = 1 if s'g ≤ (1-ξ) s'Bs, else ξ s'Bs/(s'Bs - s'g) (the paper's
    (55) prints another numerator); r = ψg + (1-ψ)Bs; B - Bs(Bs)'/(s'Bs) + rr'/(s'r), where s'r ≤ (1-ξ) s'Bs < 0.
    Without damping r = g. Rows where a divisor is not clearly negative, or the angle is too wide, keep their B.
    """
    B = memory.hessian
    s = point - memory.point
    g = gradient - memory.gradient
    Bs = np.asarray((B @ s[:, :, None])[:, :, 0])
    sBs = np.einsum("nk,nk->n", s, Bs)
    sg = np.einsum("nk,nk->n", s, g)
    r = g
    if damping is not None:
        strong = sg > (1.0 - damping) * sBs
        psi = np.where(strong, damping * sBs / np.where(strong, sBs - sg, 1.0), 1.0)[:, None]
        r = psi * g + (1.0 - psi) * Bs
    sr = np.einsum("nk,nk->n", s, r)
    length = np.linalg.norm(s, axis=1)
    good = (sBs < -FLAT) & (sBs < -COSINE * length * np.linalg.norm(Bs, axis=1))
    good &= (sr < -FLAT) & (sr < -COSINE * length * np.linalg.norm(r, axis=1))
    by_Bs = np.where(good, 1.0 / np.where(good, sBs, 1.0), 0.0)[:, None, None]
    by_sr = np.where(good, 1.0 / np.where(good, sr, 1.0), 0.0)[:, None, None]
    return np.asarray(B - by_Bs * (Bs[:, :, None] * Bs[:, None, :]) + by_sr * (r[:, :, None] * r[:, None, :]))
