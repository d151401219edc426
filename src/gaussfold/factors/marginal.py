"""The projection that can be believed: keep the strongest directions, and every parameter's own variance.

In the metric of Ψ the target WW' + Ψ + XBX' is I + ZZ', as in ``eigen``, whose directions are kept and dropped here,
too. They are orthogonal in that metric, so the target's covariance falls into three parts,

    P = Ψ⁻¹ - Ψ⁻¹W(I + G)⁻¹W'Ψ⁻¹ - Ψ⁻¹D(I + g)⁻¹D'Ψ⁻¹,

and with the shares ρ (of what is kept) and t (of what is dropped) its diagonal is (1 - ρ - t)/ψ. Among all Ψ the one
that keeps this diagonal minimises KL(target ‖ projection); the paper, and ``eigen``, look at the precision instead,
KL(projection ‖ target), and are too sure of everything that the factors cannot hold. We move

    ψ ← ψ (1 - ρ) / (1 - ρ - t),

which is ψ times the variance that would be left over the variance that should be: always positive, exact without
factors (then it is the diagonal belief with the marginal coupling) and where nothing is dropped. Further loops
repeat it with the ρ of the new Ψ, until the diagonal is kept to the last digit. A negative weight takes the same way
(its direction has a negative strength above -1), so nothing here needs EM.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh

from gaussfold.engine.lowrank.products import columns, gram, mix
from gaussfold.engine.lowrank.row import KeptVariance, Rescaled, RowCut, fold_row
from gaussfold.factors.eigen import AS_IT_IS, Sight, cut_weakest, row_cut, small_gram, turn_back, weakest
from gaussfold.factors.recursive_em import Seen, tiles
from gaussfold.linalg.triangles import inverse_of_lower
from gaussfold.rows import Matrix, is_sparse
from gaussfold.types import Array

ROUNDING = 1e-13
"""Of a Gram matrix: directions that hold less than this of its largest eigenvalue hold nothing."""


class Left(NamedTuple):
    """The projection's factors are in place; what is left to do is the diagonal."""

    gram: Array
    """W'Ψ⁻¹W of the new factors and the old Ψ."""
    lost: Array
    """t: the share of ψ⁻¹ that dropped directions explain."""
    least: float
    """The least share of a variance that the dropped directions can leave."""


def project_marginal(
    W: Array,
    psi: Array,
    G: Array,
    X: Matrix,
    weight: Array,
    alpha: float = 1.0,
    inner_loops: int = 1,
    seen: Seen | None = None,
    due: Array | None = None,  # noqa: ARG001 - only the eigen-projection leaves anything for later
) -> Array:
    """As :func:`gaussfold.factors.recursive_em.project_em`, with every marginal variance kept."""
    if not (weight < 0.0).any():
        keep_variances(W, psi, G, X, weight, inner_loops, seen, alpha)
    elif len(G) < psi.size:
        _keep(W, psi, _signed_directions(W, psi, G, X, weight, alpha, seen), inner_loops)
    else:
        return _signed_exactly(W, psi, X, weight, alpha)
    return gram(W, psi)


def keep_variances(
    W: Array,
    psi: Array,
    G: Array,
    X: Matrix,
    weight: Array,
    inner_loops: int = 1,
    seen: Seen | None = None,
    alpha: float = 1.0,
) -> Array:
    """The projection where no weight is negative, in place; returns the strengths of what was dropped."""
    cut = cut_weakest(W, psi, G, X, weight, alpha, seen)
    shares, lost = 1.0 / (1.0 + cut.strength), np.empty(psi.size)
    for part in [slice(None)] if is_sparse(X) else columns(X, W.shape[1]):
        tile, rows = W[part], X[:, part]
        dropped = cut.dropped(tile, rows)
        lost[part] = _squares(dropped, shares) / psi[part]
        turn_back(tile, cut, dropped, rows)
    _keep(W, psi, Left(cut.kept_gram(), lost, float(shares.min(initial=1.0))), inner_loops)
    return cut.strength


def _keep(W: Array, psi: Array, left: Left, inner_loops: int) -> None:
    """The diagonal that keeps the variances, to first order or, by further loops, to any."""
    rest = _unexplained(W, psi, left.gram)
    share = np.maximum(1.0 - left.lost / rest, left.least)
    wanted = rest * share / psi if inner_loops > 1 else rest
    psi /= share.astype(psi.dtype, copy=False)
    for _ in range(inner_loops - 1):
        psi *= (_unexplained(W, psi, gram(W, psi)) / (psi * wanted)).astype(psi.dtype)


def project_row(
    W: Array, psi: Array, G: Array, mean: Array, x: Array, sight: Sight, precision: float, gain: float
) -> Array:
    """As :func:`project_marginal` for one dense row and few factors, and mean += gain·P·x, in one pass; in place."""
    return RowPass.of(G, sight, precision).fold(W, psi, mean, x, sight, gain, AS_IT_IS)[0]


class RowPass(NamedTuple):
    """One row's projection, found from what was seen of the row and still to be carried out."""

    strength: Array
    """Of the direction that is dropped."""
    cut: RowCut
    kept: KeptVariance

    @classmethod
    def of(cls, G: Array, sight: Sight, precision: float) -> RowPass:
        """Find the weakest direction."""
        root = np.sqrt(precision)
        side = sight.reach * root
        small = np.block([[G, side[:, None]], [side[None], np.array([[precision * sight.inner]])]])
        strength, vectors = weakest(small, 1)
        cut = row_cut(vectors[:, 0], root)
        basis = np.eye(len(small), len(G))
        basis += np.outer(np.append(cut.dropped, (cut.dropped_x - cut.turned_x) / root), cut.back)
        whiten, floor = _whitening(basis.T @ small @ basis)
        return cls(strength, cut, KeptVariance(1.0 / (1.0 + float(strength[0])), floor, whiten))

    def fold(
        self, W: Array, psi: Array, mean: Array, x: Array, sight: Sight, gain: float, rescaled: Rescaled
    ) -> tuple[Array, float]:
        """Carry it out, in one pass; returns W'Ψ⁻¹W, and what is left of the base (see ``fold_row``)."""
        fresh = np.empty((W.shape[1], W.shape[1]))
        return fresh, fold_row(W, psi, mean, x, sight.explained, gain, self.cut, self.kept, rescaled, fresh)


def _signed_directions(
    W: Array, psi: Array, G: Array, X: Matrix, weight: Array, alpha: float, seen: Seen | None
) -> Left:
    """The same where weights may be negative: directions of ZSZ', S the signs; a strength is above -1 then.

    With Z'Z = R'R they are ZR⁺y for the eigenvectors y of RSR'. What holds nothing is left out.
    """
    root, p = np.sqrt(np.abs(weight)), len(G)
    small = small_gram(W, psi, G, X, root, alpha, seen)
    values, vectors = eigh(small)
    alive = values > ROUNDING * max(float(values[-1]), 1.0)
    R = np.sqrt(values[alive])[:, None] * vectors[:, alive].T
    signs = np.append(np.ones(p), np.sign(weight))
    strength, y = eigh((R * signs) @ R.T)
    _check_strength(strength)
    unit = (vectors[:, alive] / np.sqrt(values[alive])) @ y
    kept = np.arange(len(strength)) >= max(len(strength) - p, int((strength <= 0.0).sum()))
    factors = np.zeros((len(small), p))
    factors[:, : int(kept.sum())] = unit[:, kept] * np.sqrt(strength[kept])
    dropped = mix(W, unit[:p, ~kept], X, root[:, None] * unit[p:, ~kept])
    shares = strength[~kept] / (1.0 + strength[~kept])
    lost = _squares(dropped, shares) / psi
    W[:] = mix(W, factors[:p], X, root[:, None] * factors[p:]).T
    return Left(factors.T @ small @ factors, lost, 1.0 / (1.0 + max(float(strength[~kept].max(initial=0.0)), 0.0)))


def _signed_exactly(W: Array, psi: Array, X: Matrix, weight: Array, alpha: float) -> Array:
    """As many factors as parameters hold every precision: Ψ gives up what the weakest direction lacks."""
    rows = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
    metric = np.sqrt(alpha * np.asarray(psi, dtype=np.float64))
    factors, added = W / metric[:, None], rows / metric
    strength, vectors = eigh(alpha * factors @ factors.T + (added.T * weight) @ added)
    lack = min(float(strength[0]), 0.0)
    _check_strength(strength)
    psi[:] = metric**2 * (1.0 + lack)
    W[:] = metric[:, None] * vectors * np.sqrt(np.maximum(strength - lack, 0.0))
    return gram(W, psi)


def _check_strength(strength: Array) -> None:
    if not (strength > -1.0).all():
        msg = "weight: negative weights leave a precision that is not positive definite"
        raise ValueError(msg)


def _squares(rows: Array, weight: Array) -> Array:
    """Σ weight·row² over some rows, in float64."""
    return np.asarray(weight.astype(rows.dtype, copy=False) @ np.square(rows), dtype=np.float64)


def _unexplained(W: Array, psi: Array, G: Array) -> Array:
    """1 - ρ: the share of ψ⁻¹ that the factors leave to a marginal variance."""
    whiten, floor = _whitening(G)
    turn = np.asarray(whiten.T, dtype=W.dtype, order="C")
    out = np.empty(psi.size)
    for part in tiles(W):
        seen = W[part] @ turn
        out[part] = np.einsum("ij,ij->i", seen, seen)
    out /= psi
    np.subtract(1.0, out, out=out)
    return np.maximum(out, floor, out=out)


def _whitening(G: Array) -> tuple[Array, float]:
    """L⁻¹ of LL' = I + G, and the least that 1 - ρ can be, 1/(1 + the largest strength) (bounded by the trace)."""
    one = np.eye(len(G))
    lower = cholesky(one + 0.5 * (G + G.T), lower=True)
    return np.ascontiguousarray(inverse_of_lower(lower)), 1.0 / (1.0 + float(np.trace(G)))
