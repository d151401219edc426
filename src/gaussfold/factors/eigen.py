"""The projection that beats EM at equal cost: drop the weakest directions, keep the diagonal.

In the metric of Ψ the target WW' + Ψ + XBX' is I + ZZ', Z = Ψ^(-1/2)[W, X√B] with p + K columns. Its K weakest
directions v (eigenvectors of the small matrix Z'Z) are dropped from the factors and their squares go to the
diagonal, so that the diagonal of the target is kept exactly:

    [W, X√B] ← [W, X√B](I - VV'),   Ψ ← Ψ + diag(DD'),  D = [W, X√B]V.

The (p+K)-column factor is brought back to p columns by the block reflector I - YA⁻¹Y', Y = V - [0; Q], that turns V
into the last K coordinates: with V = [Vp; Vx], Vx = U₁ΣU₂', Q = -U₁U₂' and A = I + U₂ΣU₂',

    W ← W - (D - X√B Q)A⁻¹Vp'.

A rank-K update, whatever K, and A ≥ I: nothing can be ill-conditioned. Directions that hold nothing are dropped
first, so W = 0 is as good a start as any, and nothing at all is lost until the data exceed rank p.

What goes to the diagonal is noise that the kept directions hold as well: in the new metric the target's part outside
ZZ' has shrunk from I by δ on average, so a kept direction of strength g is worth g - δ to the likelihood (W =
U(Λ-I)^(1/2) at its maximum). Without that correction weak factors end up too strong by the noise. It is a d×p by p×p
product, and as δ is small it waits until p rows have gone by (of single rows at least eight): ``due`` remembers
how much.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, svd

from gaussfold.engine.lowrank.products import add_product, add_squares, gram, mix, mix_rows, reach
from gaussfold.engine.lowrank.row import AS_THEY_ARE, Rescaled, RowCut, fold_row, turn_rows
from gaussfold.factors.recursive_em import Seen, em_loop, project_em, tile_gram, tiles
from gaussfold.rows import Matrix
from gaussfold.types import Array

FEW = 16
"""Up to this many factors, reading them costs more than the arithmetic: passes are fused."""
PATIENCE = 8
"""Rows that go by at least, one at a time, before kept directions are corrected for noise."""

AS_IT_IS = Rescaled(np.empty(0), 1.0)
"""The diagonal is not rescaled."""


class Sight(NamedTuple):
    """One row through W: W'Ψ⁻¹x, x'Ψ⁻¹x, and M⁻¹W'Ψ⁻¹x."""

    reach: Array
    inner: float
    explained: Array


class Cut(NamedTuple):
    """The weakest directions of a target, on their way out."""

    strength: Array
    """Their strengths g in the metric of Ψ."""
    directions: Array
    """V, (p+K)×K."""
    small: Array
    """Z'Z, (p+K)×(p+K)."""
    back: Array
    """-A⁻¹Vp'."""
    turned: Array
    """Q."""
    root: Array
    """√B."""

    def dropped(self, W: Array, X: Matrix) -> Array:
        """D' = V'[W, X√B]', K×d, or of some rows of W and columns of X."""
        p = self.back.shape[1]
        return mix(W, self.directions[:p], X, self.root[:, None] * self.directions[p:])

    def kept_gram(self) -> Array:
        """W'Ψ⁻¹W of the factors after :func:`turn_back`, with Ψ as it was."""
        p = self.back.shape[1]
        shifted = self.directions.copy()
        shifted[p:] -= self.turned
        basis = np.eye(len(self.small), p) + shifted @ self.back
        return np.asarray(basis.T @ self.small @ basis)


def project_eigen(
    W: Array,
    psi: Array,
    G: Array,
    X: Matrix,
    weight: Array,
    alpha: float = 1.0,
    inner_loops: int = 1,
    seen: Seen | None = None,
    due: Array | None = None,
) -> Array:
    """As :func:`gaussfold.factors.recursive_em.project_em`; loops after the first are steps of EM from here.

    A negative weight (a likelihood that is not log-concave) has no place among directions: EM takes such rows.
    ``due`` holds (δ, rows since the kept directions were corrected for noise) and is updated; without it they are
    corrected at once.
    """
    if (weight < 0.0).any():
        return project_em(W, psi, G, X, weight, alpha, inner_loops, seen)
    base, base_psi = (W.copy(), psi.copy()) if inner_loops > 1 else (W, psi)
    cut = cut_weakest(W, psi, G, X, weight, alpha, seen)
    before, dropped = psi.copy(), cut.dropped(W, X)
    add_squares(psi, dropped)
    before /= psi
    noise = 1.0 - float(before.mean(dtype=np.float64))
    del before
    turn_back(W, cut, dropped, X)
    count = len(cut.strength)
    patience = len(G) if count > 1 else max(len(G), PATIENCE)  # a single row is treated as project_row does
    G = _settle(W, psi, gram(W, psi), noise, count, np.array([0.0, np.inf]) if due is None else due, patience)
    for _ in range(inner_loops - 1):
        G = em_loop(W, psi, G, base, base_psi, X, weight, alpha)
    return G


def cut_weakest(
    W: Array, psi: Array, G: Array, X: Matrix, weight: Array, alpha: float = 1.0, seen: Seen | None = None
) -> Cut:
    """The K weakest directions of [√α W, X√B] in the metric of αΨ; W and Ψ are scaled by α, in place."""
    root = np.sqrt(weight)
    small = small_gram(W, psi, G, X, root, alpha, seen)
    strength, V = weakest(small, len(root))
    Vp, Vx = V[: len(G)], V[len(G) :]
    left, sigma, right = svd(Vx)
    A_inverse = right.T @ ((1.0 / (1.0 + sigma))[:, None] * right)
    return Cut(strength, V, small, -A_inverse @ Vp.T, -(left @ right), root)


def turn_back(W: Array, cut: Cut, D: Array, X: Matrix) -> None:
    """[W, X√B] without what was cut, in the p columns of W, in place; D, what was dropped, is overwritten."""
    D -= mix_rows((cut.root[:, None] * cut.turned).T, X, W.dtype)
    add_product(W, D, cut.back)


def small_gram(W: Array, psi: Array, G: Array, X: Matrix, root: Array, alpha: float, seen: Seen | None) -> Array:
    """Z'Z of Z = Ψ^(-1/2)[W, X·root]; W and Ψ are scaled by α first, in place, which leaves G as it is."""
    R, inner = reach(W, psi, X) if seen is None else seen[:2]
    if alpha != 1.0:
        scale = np.sqrt(alpha)
        R, inner = R / scale, inner / alpha
        W *= W.dtype.type(scale)
        psi *= psi.dtype.type(alpha)
    return np.block([[G, R * root], [(R * root).T, (root[:, None] * inner) * root]])


def project_row(
    W: Array, psi: Array, G: Array, mean: Array, x: Array, sight: Sight, precision: float, gain: float, due: Array
) -> Array:
    """As :func:`project_eigen` for one dense row and few factors, and mean += gain·P·x, in one pass; in place."""
    root = np.sqrt(precision)
    side = sight.reach * root
    small = np.block([[G, side[:, None]], [side[None], np.array([[precision * sight.inner]])]])
    v = weakest(small, 1)[1][:, 0]
    fresh = np.empty_like(G)
    kept = fold_row(W, psi, mean, x, sight.explained, gain, row_cut(v, root), AS_THEY_ARE, AS_IT_IS, fresh)
    return _settle(W, psi, fresh, 1.0 - kept, 1, due, max(len(G), PATIENCE))


def _settle(W: Array, psi: Array, G: Array, noise: float, count: int, due: Array, patience: int) -> Array:
    """Count the noise of a projection of ``count`` rows; take it from the kept directions after ``patience`` rows."""
    due[:] = (1.0 - noise) * due[0] + noise, due[1] + count
    if due[1] >= patience:
        G = _weaken(W, psi, G, float(due[0]))
        due[:] = 0.0
    return G


def row_cut(v: Array, root: float) -> RowCut:
    """What one row takes from the factors and gives back; the reflector's Q and A for K = 1."""
    sign = 1.0 if v[-1] >= 0.0 else -1.0
    return RowCut(v[:-1], root * v[-1], -root * sign, -v[:-1] / (1.0 + abs(v[-1])))


def weakest(matrix: Array, count: int) -> tuple[Array, Array]:
    """The ``count`` smallest eigenvalues, none below zero, and eigenvectors, by whichever driver is faster."""
    if 8 * count > len(matrix) or len(matrix) < 24:
        values, vectors = np.linalg.eigh(matrix)
    else:
        values, vectors = eigh(matrix, subset_by_index=[0, count - 1])
    return np.maximum(values[:count], 0.0), np.asarray(vectors[:, :count])


def _weaken(W: Array, psi: Array, G: Array, noise: float) -> Array:
    """Take ``noise`` from the strength of every direction of W, and give it to Ψ; the factors come out rotated."""
    strength, V = np.linalg.eigh(G)
    strength = np.maximum(strength, 0.0)
    share = np.where(strength > noise, noise / np.where(strength > 0.0, strength, 1.0), 1.0)
    if noise == 0.0 or not strength.any():
        return G
    total = np.zeros_like(G)
    if len(G) <= FEW:
        turn_rows(W, psi, V, np.sqrt(1.0 - share), share, total)
        return total
    kept, lost, turn = (a.astype(W.dtype) for a in (np.sqrt(1.0 - share), share, V))
    for part in tiles(W):
        turned = W[part] @ turn
        psi[part] += np.square(turned) @ lost
        np.multiply(turned, kept, out=W[part])
        total += tile_gram(W[part], psi[part])
    return total
