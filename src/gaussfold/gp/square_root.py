"""A smoother that cannot lose positive definiteness: square roots only, no difference of covariances anywhere.

The compiled filter works on covariances. Where a site is sharper than the marginal it meets by more than 1/ε (under a
wide prior a Gauss-Newton site can have a precision of 1e50), ``P - PH'ΩHP`` rounds to something indefinite. Then the
same posterior comes from here, some hundred times slower: a filter forward on roots of covariances, one backward on
rows of information (``Y x ≈ η`` with unit noise), and a least-squares problem where they meet; every step is one
orthogonal transformation. bayes-newton (68)-(71).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from gaussfold.linalg.roots import triangularise
from gaussfold.types import Array

FLOOR = 4.0 * np.finfo(float).eps
"""Eigenvalues of a site, scaled to a unit diagonal, below this are rounding: they are rounded up to it, so that a shift
that is rounding too has something to be divided by."""


class Model(NamedTuple):
    """Steps and matrices of a chain; Q by its roots."""

    step: np.ndarray  # (N,): row of the tables
    A: Array  # (U, S, S)
    noise_root: Array  # (U, S, S)
    H: Array  # (D, S)
    mean: Array  # (S,): of the first state
    root: Array  # (S, S)


class Smoothed(NamedTuple):
    """Marginals of the latents, with and without their own site, log Z, and the filtered states."""

    mean: Array  # (N, D)
    cov: Array  # (N, D, D)
    others_mean: Array
    others_cov: Array
    log_z: float
    filtered_mean: Array  # (N, S)
    filtered_root: Array  # (N, S, S)


def smooth(model: Model, precision: Array, shift: Array) -> Smoothed:
    """The posterior under positive semi-definite sites; rounding below zero counts as zero."""
    rows, values = _site_rows(precision, shift)
    N, D, S = len(shift), model.H.shape[0], model.H.shape[1]
    means, roots = np.empty((2, N, S)), np.empty((2, N, S, S))  # before and after a row's own site
    m, root, log_z = model.mean, model.root, 0.0
    for n in range(N):
        if n > 0:
            A = model.A[model.step[n]]
            m, root = A @ m, triangularise(np.hstack([A @ root, model.noise_root[model.step[n]]]))
        means[0, n], roots[0, n] = m, root
        m, root, gain = _absorb(m, root, rows[n] @ model.H, values[n])
        means[1, n], roots[1, n] = m, root
        log_z += gain
    mean, cov = np.empty((2, N, D)), np.empty((2, N, D, D))
    Y, eta = np.zeros((0, S)), np.zeros(0)
    for n in range(N - 1, -1, -1):
        for when in (0, 1):
            mean[when, n], cov[when, n] = _meet(means[when, n], roots[when, n], Y, eta, model.H)
        Y, eta = _compressed(np.vstack([Y, rows[n] @ model.H]), np.concatenate([eta, values[n]]))
        if n > 0:
            Y, eta = _back(Y, eta, model.A[model.step[n]], model.noise_root[model.step[n]])
    return Smoothed(mean[1], cov[1], mean[0], cov[0], log_z, means[1], roots[1])


def condition(roots: Sequence[Array], precision: Array, shift: Array) -> tuple[Array, Array, float]:
    """Marginal means, covariances and log Z without a chain: latent d at all points is ``roots[d] u``, u ~ N(0, I)."""
    rows, z = _site_rows(precision, shift)
    (N, D), sizes = shift.shape, [root.shape[1] for root in roots]
    F = np.zeros((N, D, sum(sizes)))
    for d, root in enumerate(roots):
        F[:, d, sum(sizes[:d]) : sum(sizes[: d + 1])] = root
    seen = (rows @ F).reshape(N * D, -1)
    upper, target, pivot = _sorted_qr(
        np.vstack([np.eye(sum(sizes)), seen]), np.concatenate([np.zeros(sum(sizes)), z.ravel()])
    )
    half = solve_triangular(upper, F.reshape(N * D, -1)[:, pivot].T, trans="T").T.reshape(F.shape)
    log_z = 0.5 * float(target @ target) - float(np.log(np.abs(np.diag(upper))).sum())
    return half @ target, half @ np.swapaxes(half, 1, 2), log_z


def _site_rows(precision: Array, shift: Array) -> tuple[Array, Array]:
    """Every site as D observations ``w_i'f ≈ z_i`` of unit noise: Λ = W'W and λ = W'z.

    W is made of the eigenvectors of the site scaled to a unit diagonal. A latent without precision but with a shift
    gets ε² of the largest diagonal entry.
    """
    diagonal = np.diagonal(precision, axis1=1, axis2=2)
    largest = diagonal.max(axis=1, keepdims=True)
    scale = np.sqrt(np.maximum(diagonal, np.finfo(float).eps ** 2 * largest))
    safe = np.where(scale > 0.0, scale, 1.0)
    unit = precision / (safe[:, :, None] * safe[:, None, :])
    values, vectors = np.linalg.eigh(unit)
    values = np.where(largest > 0.0, np.maximum(values, FLOOR), 0.0)
    turned = np.swapaxes(vectors, 1, 2)
    z = (turned @ (shift / safe)[:, :, None])[:, :, 0] / np.sqrt(np.where(values > 0.0, values, 1.0))
    return np.sqrt(values)[:, :, None] * turned * scale[:, None, :], np.where(values > 0.0, z, 0.0)


def _absorb(m: Array, root: Array, rows: Array, z: Array) -> tuple[Array, Array, float]:
    """Observe ``rows x ≈ z``: [[I, WHR], [0, R]] made triangular has the innovation's root, the gain and the new R."""
    D, S = rows.shape
    L = triangularise(np.block([[np.eye(D), rows @ root], [np.zeros((S, D)), root]]))
    pull = solve_triangular(L[:D, :D], z - rows @ m, lower=True)
    gain = -float(np.log(np.diag(L)[:D]).sum()) + 0.5 * float(z @ z - pull @ pull)
    return m + L[D:, :D] @ pull, L[D:, D:], gain


def _meet(m: Array, root: Array, Y: Array, eta: Array, H: Array) -> tuple[Array, Array]:
    """Past N(m, RR') and future ``Yx ≈ η``: x = m + Ru with ``|u|² + |YRu - (η - Ym)|²`` least."""
    S = len(m)
    upper, target, pivot = _sorted_qr(np.vstack([np.eye(S), Y @ root]), np.concatenate([np.zeros(S), eta - Y @ m]))
    half = solve_triangular(upper, (H @ root)[:, pivot].T, trans="T").T  # H R (I + R'Y'YR)^{-1/2}
    return H @ m + half @ target, half @ half.T


def _sorted_qr(rows: Array, target: Array) -> tuple[Array, Array, np.ndarray]:
    """QR with rows by decreasing size and pivoted columns, accurate row by row (Cox and Higham, 1998)."""
    order = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
    Q, R, pivot = qr(rows[order], mode="economic", pivoting=True)
    return R, Q.T @ target[order], pivot


def _compressed(Y: Array, eta: Array) -> tuple[Array, Array]:
    """At most S rows that say the same."""
    if len(Y) <= Y.shape[1]:
        return Y, eta
    R, target, pivot = _sorted_qr(Y, eta)
    out = np.empty(R.shape)
    out[:, pivot] = R
    return out, target


def _back(Y: Array, eta: Array, A: Array, noise_root: Array) -> tuple[Array, Array]:
    """What ``Yx ≈ η`` says one step earlier: x = A x₀ + B w with w ~ N(0, I) eliminated by orthogonal rows."""
    S = A.shape[0]
    rows = np.vstack([np.eye(S), Y @ noise_root])
    rest = np.vstack([np.zeros((S, S)), Y @ A])
    target = np.concatenate([np.zeros(S), eta])
    order = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
    Q = qr(rows[order], mode="full", pivoting=True)[0][:, S:]
    return _compressed(Q.T @ rest[order], Q.T @ target[order])


def roots_of(matrices: Array) -> Array:
    """Square roots of positive semi-definite matrices; eigenvalues below zero are rounding and count as zero."""
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])
