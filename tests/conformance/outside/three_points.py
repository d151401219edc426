"""A rule from outside: variational inference whose averages are taken at three points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gaussfold.engine import families
from gaussfold.engine.seam import compiled_for
from gaussfold.protocols import Likelihood
from gaussfold.rules.base import StreamRule, View
from gaussfold.types import Array, ArrayLike, Moments, Record, Site, VectorSite


@dataclass(frozen=True)
class ThreePoints(StreamRule):
    """Averages of l' and l'' at m and at m ± spread √v; spread √3 is Gauss-Hermite quadrature of order 3."""

    spread: float = math.sqrt(3.0)
    name: ClassVar[str] = "three-points"
    needs_log_concave: ClassVar[bool] = True

    @property
    def record(self) -> ThreePointsRecord | None:
        """How the engine knows this rule."""
        return ThreePointsRecord(self.spread)

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """One latent per row."""
        m, std = np.asarray(moments.mean), np.sqrt(moments.variance)
        side = 0.5 / self.spread**2
        first, second = (1.0 - 2.0 * side) * np.asarray(likelihood.derivatives(y, m))
        for step in (-self.spread, self.spread):
            there = side * np.asarray(likelihood.derivatives(y, m + step * std))
            first, second = first + there[0], second + there[1]
        return Site(first, second)

    def site_several(self, view: View) -> VectorSite:
        """Several latents per row: two points along each column of a square root of the covariance."""
        side = 0.5 / self.spread**2
        roots = self.spread * np.linalg.cholesky(view.cov)
        steps = [sign * roots[:, :, k] for k in range(view.mean.shape[1]) for sign in (-1.0, 1.0)]
        looks = [view.likelihood.derivatives(view.Y, view.mean + step) for step in steps]
        middle = view.likelihood.derivatives(view.Y, view.mean)
        sums = (sum(parts) for parts in zip(*looks, strict=True))
        weight = 1.0 - side * len(steps)
        return VectorSite(*(weight * here + side * there for here, there in zip(middle, sums, strict=True)))

    def energy_several(self, view: View) -> Array:
        """``E log p``: a site from any rule has a variational energy."""
        return view.likelihood.expected_log_prob(*view[1:])


class ThreePointsRecord(NamedTuple):
    """The rule in the engine."""

    spread: float


@compiled_for(ThreePointsRecord)
def rule_site(
    family: Record, rule: ThreePointsRecord, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float]:
    """As above; all else has defaults (``gaussfold.engine.rules``)."""
    side = 0.5 / rule.spread**2
    step = rule.spread * math.sqrt(v)
    here = families.derivatives(family, y, m)
    low = families.derivatives(family, y, m - step)
    high = families.derivatives(family, y, m + step)
    middle = 1.0 - 2.0 * side
    return w * (middle * here[0] + side * (low[0] + high[0])), w * (middle * here[1] + side * (low[1] + high[1]))
