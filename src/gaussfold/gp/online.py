"""New time points on a Markov prior without refitting: a filter, and a fixed-lag smoother that catches up.

The filtered state just before a window of recent points sums up all that came before. New points join the window, the
rule visits the window's sites a few times (each time a filter and a smoother over the window only), and points that are
more than ``lag`` behind keep their sites for good. Cost per call: the window, not the history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gaussfold.checks import whole
from gaussfold.gp.affine import AffineMap
from gaussfold.gp.chain import Chain, steps_of
from gaussfold.gp.extras import Extras
from gaussfold.gp.origin import Anchor
from gaussfold.gp.priors import Marginals
from gaussfold.gp.starts import START_PRECISION, mode_sites, plain_sites
from gaussfold.gp.walk import Problem, Walk, at_sites
from gaussfold.gp.weighted import observed
from gaussfold.likelihoods import as_vector
from gaussfold.types import Array, Sites

if TYPE_CHECKING:
    from gaussfold.gp.fitting import Fitting


class Points(NamedTuple):
    """Sorted points with their labels and sites."""

    times: Array
    labels: Array
    precision: Array
    shift: Array
    offset: Array
    """(n, D): what is known of the latents, the mean function apart."""
    weights: Array
    """(n,)"""

    @property
    def sites(self) -> Sites:
        """Their sites on the latents."""
        return Sites(self.precision, self.shift)

    @property
    def extras(self) -> Extras:
        """Offsets and weights, None where they say nothing."""
        return Extras(self.offset if self.offset.any() else None, None if (self.weights == 1.0).all() else self.weights)


def _cut(rows: Points, part: slice) -> Points:
    return Points(*(np.array(a[part]) for a in rows))


def _filled(extras: Extras, sites: Sites) -> tuple[Array, Array]:
    """Offsets and weights, written out."""
    rows = len(sites.shift)
    return (
        np.zeros(sites.shift.shape) if extras.offset is None else extras.offset,
        np.ones(rows) if extras.weights is None else extras.weights,
    )


def _all_points(model: Fitting) -> Points:
    """Those of a fitted model, in time order."""
    order = np.argsort(model.X_[:, 0], kind="stable")
    precision, shift = (a[order] for a in model.sites_)
    more = _filled(model.extras_.of(order), model.sites_)
    return Points(model.X_[order, 0], model.Y_[order], precision, shift, *more)


def _joined(parts: list[Points]) -> Points:
    return Points(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Online:
    """The state of a stream: what is settled, the window, and the anchor between them."""

    def __init__(self, model: Fitting, window: Points, anchor: Anchor | None = None) -> None:
        self._model = model
        self._settled: list[Points] = []
        self._window = window
        self._anchor = anchor
        self._dropped = False

    @property
    def origin(self) -> Anchor | None:
        """What is left of rows that are gone."""
        return self._anchor if self._dropped else None

    @property
    def state(self) -> tuple[Anchor, int, bool] | None:
        """The anchor, how many points the window has, and whether those before are gone; None before there is one."""
        return None if self._anchor is None else (self._anchor, len(self._window.times), self._dropped)

    @classmethod
    def resumed(cls, model: Fitting, anchor: Anchor, window: int, *, dropped: bool) -> Online:
        """A stream as `state` says it was, its points those of the model."""
        whole = _all_points(model)
        first = len(whole.times) - window
        self = cls(model, _cut(whole, slice(first, None)), anchor)
        self._dropped = dropped
        if first:
            self._settled.append(_cut(whole, slice(first)))
        return self

    @classmethod
    def start(cls, model: Fitting) -> Online:
        """From a fitted model, or from nothing."""
        if not model.is_fitted:
            D, outputs = model.latents, as_vector(model.likelihood).outputs
            shapes = ((0,), (0, outputs), (0, D, D), (0, D), (0, D), (0,))
            return cls(model, Points(*(np.empty(shape) for shape in shapes)))
        return cls(model, _all_points(model))

    def add(self, X: Array, Y: Array, extras: Extras, lag: int, iterations: int, *, keep: bool = True) -> None:
        """Absorb new points; all checks are done before anything changes."""
        whole("lag", lag, least=0)
        whole("iterations", iterations)
        first = max(0, len(self._window.times) - lag)
        oldest = float(self._window.times[first]) if first < len(self._window.times) else self._last_time()
        early = X[:, 0] < (-np.inf if oldest is None else oldest)
        if early.any():
            row = int(np.argmax(early))
            msg = (
                f"X[{row}] = {float(X[row, 0])!r} lies before {oldest!r}, where the window of lag={lag} begins; "
                "raise lag, or call fit with all the data"
            )
            raise ValueError(msg)
        first_sites = self._first_sites(X, Y, extras)
        new = Points(X[:, 0], Y, *first_sites, *_filled(extras, first_sites))
        anchor = self._anchor if first == 0 else self._filtered(first)
        window = _joined([_cut(self._window, slice(first, None)), new])
        order = np.argsort(window.times, kind="stable")
        window = Points(*(a[order] for a in window))
        sites = self._updated(window, anchor, iterations)
        if first and keep and not self._dropped:
            self._settled.append(_cut(self._window, slice(first)))
        if not keep and anchor is not None:
            self._dropped = True
            self._settled.clear()
        self._anchor = anchor
        self._window = window._replace(precision=sites.precision, shift=sites.shift)

    def _last_time(self) -> float | None:
        if len(self._window.times):
            return float(self._window.times[-1])
        return None if self._anchor is None else self._anchor.time

    def _chain(self, times: Array, anchor: Anchor | None) -> Chain:
        """A chain over sorted times that starts from the anchor's prediction."""
        model = self._model
        chain = Chain(model.covariances, steps_of(times))
        if anchor is not None:
            chain.start_after(anchor)
        return chain

    def _filtered(self, first: int) -> Anchor:
        """The filtered state at the last row that leaves the window."""
        chain = self._chain(self._window.times, self._anchor)
        state = chain.state(*self._map(self._window).pulled(self._window.sites), first - 1)
        return Anchor(float(self._window.times[first - 1]), *state)

    def _map(self, points: Points) -> AffineMap:
        """How the latents there are made of the processes."""
        model, offset = self._model, points.extras.offset
        return model.map_at(points.times[:, None], offset) or AffineMap(None, None)

    def _first_sites(self, X: Array, Y: Array, extras: Extras) -> Sites:
        """Of points that were not seen before."""
        model, precision = self._model, self._model.start_precision
        labels = observed(Y, extras.weights)
        if precision is None:
            floor = START_PRECISION if model.curvature.bends_with_step else 0.0
            found = mode_sites(model.recipe_for(extras), model.prior_moments(X, extras.offset), labels, floor)
            if found is not None:
                return found
        return plain_sites(labels, model.latents, START_PRECISION if precision is None else precision)

    def _updated(self, window: Points, anchor: Anchor | None, iterations: int) -> Sites:
        """The window's sites after so many checked steps."""
        chain, link = self._chain(window.times, anchor), self._map(window)

        def posterior(sites: Sites) -> Marginals:
            found = chain.posterior(*link.pulled(sites))
            cov = link.cov(found.cov)
            return Marginals(link.mean(found.mean), cov, cov, found.log_z + link.log_factor(sites))

        extras = window.extras
        problem = Problem(self._model.recipe_for(extras), observed(window.labels, extras.weights), posterior)
        start = at_sites(problem, window.sites, None)
        walk = Walk(problem, start, self._model.damping)
        for _ in range(iterations):
            walk.step()
        return walk.now.sites

    def reaches(self, X: Array) -> bool:
        """Whether no input lies before the window, so that the window alone can say what is there."""
        return len(X) > 0 and (self._anchor is None or bool(X[:, 0].min() >= self._window.times[0]))

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Marginals of the latents at inputs that the window reaches."""
        window, count = self._window, len(X)
        D, outputs = window.shift.shape[1], window.labels.shape[1]
        shapes = ((count, outputs), (count, D, D), (count, D), (count, D), (count,))
        blank = Points(X[:, 0], *(np.zeros(shape) for shape in shapes))
        both = _joined([window, blank])
        order = np.argsort(both.times, kind="stable")
        both = Points(*(a[order] for a in both))
        chain, link = self._chain(both.times, self._anchor), self._map(both)
        mean, cov, *_ = chain.posterior(*link.pulled(both.sites))
        mean, cov = link.mean(mean), link.cov(cov)
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        mine = place[len(window.times) :]
        return mean[mine], cov[mine]

    def extras(self) -> Extras:
        """Offsets and weights of all points, in time order."""
        return self.points().extras

    def points(self) -> Points:
        """All points, in time order, with their sites."""
        return _joined([*self._settled, self._window])
