"""Skeleton of a rule: the gradient averaged over the belief, the curvature at its mean. Copy, rename, replace.

In the package: this file in ``rules/`` and its entry in ``rules/catalogue.py``; there the engine's modules are
taken from ``engine.seam``, as ``rules/vi.py`` does, so that an import does not wait for Numba. From outside: this file
and ``gaussfold.registry.register("rule", Mixed)``. With ``record`` left out it runs in Python. What a rule may say of
itself (where it looks, which energy it has, which curvatures) is listed in ``gaussfold.rules.base.SiteRule``; what the
engine may be told besides ``rule_site``, in ``gaussfold.engine.rules``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from gaussfold.engine import families
from gaussfold.engine.scalar import expectations
from gaussfold.engine.seam import compiled_for
from gaussfold.protocols import Likelihood
from gaussfold.rules.base import StreamRule, View
from gaussfold.types import Array, ArrayLike, Moments, Record, Site, VectorSite


@dataclass(frozen=True)  # parameters are fields, and travel as those of the record
class Mixed(StreamRule):
    """``J = E l'(f)`` under N(m, v), ``H = l''(m)``."""

    name: ClassVar[str] = "mixed"
    needs_log_concave: ClassVar[bool] = True

    @property
    def record(self) -> MixedRecord:
        """How the engine knows it."""
        return MixedRecord()

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """One latent per row: gradient at the mean and curvature, seen from N(m, v)."""
        gradient, _ = likelihood.expected_derivatives(y, moments)
        return Site(gradient, likelihood.derivatives(y, moments.mean)[1])

    def site_several(self, view: View) -> VectorSite:
        """Several latents per row: what Gaussian processes ask."""
        gradient, _ = view.likelihood.expected_derivatives(*view[1:])
        return VectorSite(gradient, view.likelihood.derivatives(view.Y, view.mean)[1])

    def energy_several(self, view: View) -> Array:
        """The likelihood's share of the energy, per row."""
        return view.likelihood.expected_log_prob(*view[1:])


class MixedRecord(NamedTuple):
    """The rule in the engine."""


@compiled_for(MixedRecord)
def rule_site(
    family: Record, rule: MixedRecord, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float]:
    """(J, H) of the likelihood's w-th power, seen from N(m, v), when the belief before is N(m0, v0)."""
    gradient = expectations.expected_derivatives(family, y, m, v)[0]
    curvature = families.derivatives(family, y, m)[1]
    return w * gradient, w * curvature
