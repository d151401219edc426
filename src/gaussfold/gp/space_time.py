"""Gaussian processes in space and time by Kalman filter and smoother: linear in time, cubic in places.

Of ``k = time · space`` every place is a process with the covariance ``time``. With ``L L' = space(Z, Z)`` of the M
places Z and independent processes g of that covariance, the values at the places are ``L g(t)`` and those of a row

    ``f(t, s) = a(s)'g(t) + rest``,  ``a(s) = L⁻¹ space(Z, s)``,  ``Var rest = (space(s, s) - a'a) · time(t, t)``.

So a site on f_n is one on ``g(t_n)``, ``Λ_g = a Λ a'`` and ``λ_g = a λ``, all sites of a time add up to one, and a
prior of g on its times (`markov`) answers for f. If Z are all places of the data, nothing is left open there and this
is the dense prior in another form; places elsewhere, and new ones when predicting, have a rest that no site has seen.
With fewer places Z it is `sparse` in space: sites see what the places tell, as in (62).
Several latents, and the terms of a sum, have processes of their own side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from gaussfold.gp.covariances import Covariance
from gaussfold.gp.covariances.space_time import space_time_terms
from gaussfold.gp.dense import draw
from gaussfold.gp.differences import STEP, five_point
from gaussfold.gp.markov import MarkovPrior
from gaussfold.gp.priors import Marginals, PriorGradient, Slopes
from gaussfold.linalg.jitter import jittered_root
from gaussfold.linalg.small import root_adjoint
from gaussfold.linalg.triangles import divided
from gaussfold.types import Array, Sites

REMEDY = "give fewer places (inducing=), further apart, or add a White covariance in space"


class Rows(NamedTuple):
    """Rows by time: those of time i, in time order, are ``order[ends[i - 1] : ends[i]]``."""

    times: Array
    order: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, times: Array) -> Self:
        """Group them."""
        distinct, index, counts = np.unique(times, return_inverse=True, return_counts=True)
        return cls(distinct, np.argsort(index.ravel(), kind="stable"), np.cumsum(counts))

    def groups(self) -> Iterator[tuple[int, np.ndarray]]:
        """Number of every time, and its rows."""
        start = 0
        for i, end in enumerate(self.ends.tolist()):
            yield i, self.order[start:end]
            start = end


class Features(NamedTuple):
    """What rows see of the processes: ``A[d]`` (M_d, n) of latent d, and the variance left open (n, D)."""

    A: list[Array]
    open: Array


class SpaceTimePrior:
    """Independent processes in space and time, one per latent, each a `SpaceTime` or a sum of such.

    Parameters
    ----------
    covariances
        One per latent.
    X
        Inputs (N, d), time among the columns.
    places
        Z (M, d - 1).
    is_whole
        Whether these are all places of X, so that nothing is left open there.
    processes
        An earlier prior of the processes at the same times.
    """

    Z = None

    def __init__(
        self,
        covariances: Sequence[Covariance],
        X: Array,
        places: Array,
        *,
        is_whole: bool,
        processes: MarkovPrior | None = None,
    ) -> None:
        self.covariances = tuple(covariances)
        self.X, self.places, self.is_whole = X, places, is_whole
        self.terms = [space_time_terms(each) for each in self.covariances]
        first = self.terms[0][0]
        self._times, self._where = first.split(X)
        self.rows = Rows.of(self._times[:, 0])
        self.roots = [
            [jittered_root(k.space(places), f"the covariance of the {len(places)} places", REMEDY) for k in terms]
            for terms in self.terms
        ]
        in_time = [k.time for terms in self.terms for k in terms for _ in places]
        self._processes = (
            MarkovPrior(in_time, self.rows.times[:, None]) if processes is None else processes.with_covariances(in_time)
        )
        self._features = self.features(X, is_whole=is_whole)
        self._last: tuple[Sites, Sites, Marginals] | None = None

    def with_covariances(self, covariances: Sequence[Covariance], Z: Array | None = None) -> SpaceTimePrior:
        """The same inputs and places with other covariances."""
        del Z  # places stay
        return SpaceTimePrior(covariances, self.X, self.places, is_whole=self.is_whole, processes=self._processes)

    def features(self, X: Array, *, is_whole: bool = False) -> Features:
        """Of any rows."""
        times, where = self.terms[0][0].split(X)
        A, left = [], np.zeros((len(X), len(self.terms)))
        for d, (terms, roots) in enumerate(zip(self.terms, self.roots, strict=True)):
            parts = [divided(k.space(self.places, where), L) for k, L in zip(terms, roots, strict=True)]
            A.append(np.concatenate(parts))
            if not is_whole:
                for k, a in zip(terms, parts, strict=True):
                    rest = np.maximum(k.space.diagonal(where) - np.einsum("mn,mn->n", a, a), 0.0)  # rounding, jitter
                    left[:, d] += rest * k.time.diagonal(times)
        return Features(A, left)

    def update(self, sites: Sites) -> Marginals:
        """Posterior under these sites: those of one time together, one pass forward, one back."""
        _, g = self._looked(sites)
        mean, inner = self._seen(self._features, self.rows, g.mean, g.cov)
        if self.is_whole:
            return Marginals(mean, inner, inner, g.log_z)
        return Marginals(mean, _opened(inner, self._features.open), inner, g.log_z)

    def _looked(self, sites: Sites) -> tuple[Sites, Marginals]:
        """These sites as sites on the processes, and the posterior of these; kept for when asked for again."""
        if self._last is None or self._last[0] is not sites:
            pulled = self._pulled(sites)
            self._last = sites, pulled, self._processes.update(pulled)
        return self._last[1:]

    def _blocks(self) -> list[slice]:
        """Which processes belong to a latent."""
        ends = np.cumsum([len(terms) * len(self.places) for terms in self.terms]).tolist()
        return [slice(low, high) for low, high in zip([0, *ends], ends, strict=False)]

    def _pulled(self, sites: Sites) -> Sites:
        """``Σ a Λ a'`` and ``Σ a λ`` over the rows of every time."""
        A, blocks = self._features.A, self._blocks()
        size = blocks[-1].stop
        precision, shift = np.zeros((len(self.rows.times), size, size)), np.zeros((len(self.rows.times), size))
        for i, mine in self.rows.groups():
            near = [a[:, mine] for a in A]
            for d, rows in enumerate(blocks):
                shift[i, rows] = near[d] @ sites.shift[mine, d]
                for c, columns in enumerate(blocks[: d + 1]):
                    part = (near[d] * sites.precision[mine, d, c]) @ near[c].T
                    precision[i, rows, columns] = part
                    precision[i, columns, rows] = part.T
        return Sites(precision, shift)

    def _seen(self, features: Features, rows: Rows, mean: Array, cov: Array) -> tuple[Array, Array]:
        """``a'm`` and ``a'Ca`` of the processes' marginals at the rows' times."""
        A, blocks, D = features.A, self._blocks(), len(features.A)
        out, inner = np.empty((A[0].shape[1], D)), np.empty((A[0].shape[1], D, D))
        for i, mine in rows.groups():
            near = [a[:, mine] for a in A]
            for d, left in enumerate(blocks):
                out[mine, d] = mean[i, left] @ near[d]
                for c, right in enumerate(blocks[: d + 1]):
                    value = np.einsum("mn,mn->n", near[d], cov[i, left, right] @ near[c])
                    inner[mine, d, c] = inner[mine, c, d] = value
        return out, inner

    def gradient(self, sites: Sites, slopes: Slopes | None) -> PriorGradient:
        """Through time by the processes' own gradient; through space by the adjoint of every a.

        With bar_Λ, bar_λ the derivatives of E in the sites on g, that of a_n is ``2 bar_Λ a Λ + bar_λ λ'`` and, from
        the marginals themselves, ``2 C a G + m g'``. ``bar_Λ = (C + mm')/2`` and ``bar_λ = -m`` where the sites have
        settled; else the change of ``m`` and ``(C + mm')/2`` in the direction that `MarkovPrior.gradient` names joins
        them (second derivatives of log Z are symmetric), taken by differences.
        """
        pulled, g = self._looked(sites)
        bend, opened = None, None
        if slopes is not None:
            opened = np.stack([slopes.cov[:, d, d] for d in range(slopes.cov.shape[-1])], axis=1)
            total = slopes.cov + slopes.inner
            if total.any() or slopes.mean.any():
                bend = Sites(total, slopes.mean)
        through: Slopes | None = None
        bar_precision = 0.5 * (g.cov + g.mean[:, :, None] * g.mean[:, None, :])
        bar_shift = -g.mean
        if bend is not None:
            down = self._pulled(bend)
            through = Slopes(down.shift, down.precision, np.zeros(down.precision.shape))
            by_shift, by_precision = self._moved(pulled, g, down)
            bar_shift, bar_precision = bar_shift + by_shift, bar_precision - by_precision
        by_time = self._processes.gradient(pulled, through).log_parameters
        return PriorGradient(
            self._gathered(by_time, self._adjoints(sites, g, (bar_precision, bar_shift), bend), opened)
        )

    def _moved(self, pulled: Sites, g: Marginals, down: Sites) -> tuple[Array, Array]:
        """Change of the mean, and half that of ``C + mm'``, along ``dλ = γ - 2Γm``, ``dΛ = -2Γ``."""
        precision = -2.0 * down.precision
        shift = down.shift + np.einsum("tij,tj->ti", precision, g.mean)
        variance = float(np.einsum("tii->ti", g.cov).max())
        size = max(variance * float(np.abs(precision).max()), np.sqrt(variance) * float(np.abs(shift).max()), 1e-300)

        def at(h: float) -> Array:
            moved = self._processes.update(Sites(pulled.precision + h * precision, pulled.shift + h * shift))
            second = 0.5 * (moved.cov + moved.mean[:, :, None] * moved.mean[:, None, :])
            return np.concatenate([moved.mean[:, None], second], axis=1)

        found = five_point(at, STEP / size)
        self._processes.update(pulled)  # whose filter the gradient in time reads
        return found[:, 0], found[:, 1:]

    def _adjoints(self, sites: Sites, g: Marginals, bars: tuple[Array, Array], bend: Sites | None) -> list[Array]:
        """Of every latent's features, without what is left open."""
        A, blocks = self._features.A, self._blocks()
        out = [np.empty_like(a) for a in A]
        for i, mine in self.rows.groups():
            near = [a[:, mine] for a in A]
            for d, left in enumerate(blocks):
                bar = np.outer(bars[1][i, left], sites.shift[mine, d])
                if bend is not None:
                    bar += np.outer(g.mean[i, left], bend.shift[mine, d])
                for c, right in enumerate(blocks):
                    bar += 2.0 * (bars[0][i, left, right] @ near[c]) * sites.precision[mine, c, d]
                    if bend is not None:
                        bar += 2.0 * (g.cov[i, left, right] @ near[c]) * bend.precision[mine, c, d]
                out[d][:, mine] = bar
        return out

    def _gathered(self, by_time: Array, bars: list[Array], opened: Array | None) -> Array:
        """Adjoints of the features and of what they leave open, carried to the hyperparameters, in their order."""
        M, out, at = len(self.places), [], 0
        for d, (terms, roots) in enumerate(zip(self.terms, self.roots, strict=True)):
            for t, (k, L) in enumerate(zip(terms, roots, strict=True)):
                mine = slice(t * M, (t + 1) * M)
                a, bar, count = self._features.A[d][mine], bars[d][mine], len(k.time.parameters())
                in_time = by_time[at : at + M * count].reshape(M, count).sum(axis=0)
                at += M * count
                in_space = np.zeros(len(k.space.parameters()))
                if opened is not None and not self.is_whole:
                    variance = k.time.diagonal(self._times)
                    rest = k.space.diagonal(self._where) - np.einsum("mn,mn->n", a, a)
                    in_time = in_time + k.time.diagonal_vjp(self._times, opened[:, d] * rest)
                    in_space += k.space.diagonal_vjp(self._where, opened[:, d] * variance)
                    bar = bar - 2.0 * a * (opened[:, d] * variance)
                pulled = divided(bar, L, turned=True)
                in_space += k.space.vjp(self.places, self._where, pulled)
                in_space += k.space.vjp(self.places, None, root_adjoint(L, -pulled @ a.T))
                out += [in_time, in_space]
        return np.concatenate(out)

    def predict(self, sites: Sites, X: Array, *, joint: bool = False) -> tuple[Array, Array]:
        """At other times and places."""
        if joint:
            msg = "the Markov structure keeps no joint covariance; use sample, or structure='dense'"
            raise ValueError(msg)
        features, rows = self.features(X), Rows.of(self.terms[0][0].split(X)[0][:, 0])
        mean, cov = self._processes.predict(self._looked(sites)[0], rows.times[:, None])
        out, inner = self._seen(features, rows, mean, cov)
        return out, _opened(inner, features.open)

    def sample(self, sites: Sites, X: Array, n: int, rng: np.random.Generator) -> Array:
        """Paths of the processes, read at every row, and what the places leave open there."""
        features = self.features(X)
        times, where = self.terms[0][0].split(X)
        rows = Rows.of(times[:, 0])
        paths = self._processes.sample(self._looked(sites)[0], rows.times[:, None], n, rng)
        out = np.empty((n, len(X), len(self.terms)))
        for i, mine in rows.groups():
            for d, block in enumerate(self._blocks()):
                out[:, mine, d] = paths[:, i, block] @ features.A[d][:, mine]
        M, nothing = len(self.places), np.zeros((len(X), 1))
        for d, terms in enumerate(self.terms):
            rest = np.zeros((len(X), len(X)))
            for t, k in enumerate(terms):
                a = features.A[d][t * M : (t + 1) * M]
                rest += (k.space(where) - a.T @ a) * k.time(times)
            if np.diag(rest).max(initial=0.0) > UNSEEN * float(np.max(self.covariances[d].diagonal(X), initial=0.0)):
                out[:, :, d] += draw(nothing, rest, n, rng)[:, :, 0]
        return out


UNSEEN = 1e-8
"""A rest of less than this share of the variance is jitter."""


def _opened(inner: Array, left: Array) -> Array:
    """With what the places leave open, latent by latent."""
    cov = inner.copy()
    for d in range(left.shape[1]):
        cov[:, d, d] += left[:, d]
    return cov


def space_time_prior(covariances: Sequence[Covariance], X: Array, places: Array | None) -> SpaceTimePrior:
    """The prior with these places, or with all that X has."""
    where = space_time_terms(covariances[0])[0].split(X)[1]
    distinct = np.unique(where, axis=0)
    if places is None:
        places = distinct
    known = {row.tobytes() for row in np.ascontiguousarray(places)}
    is_whole = all(row.tobytes() in known for row in distinct)
    return SpaceTimePrior(covariances, X, places, is_whole=is_whole)


def is_space_time(covariances: Sequence[Covariance]) -> bool:
    """Whether all of these are sums of `SpaceTime` over one time column; raises if only some are."""
    terms = [space_time_terms(each) for each in covariances]
    columns = {k.column for each in terms for k in each}
    if not all(terms):
        return False
    if len(columns) > 1:
        msg = f"SpaceTime covariances with time in columns {sorted(columns)}: structure='markov' has one; give the same"
        raise ValueError(msg)
    return True
