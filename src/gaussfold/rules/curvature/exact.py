"""The target's own Hessian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.rules.curvature.base import Curvature, Target
from gaussfold.types import VectorSite


@dataclass(frozen=True)
class Exact(Curvature):
    """The Hessian as it is; a non-positive precision is counted and reported, never patched."""

    name: ClassVar[str] = "exact"
    is_exact: ClassVar[bool] = True

    def site(self, target: Target, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory | None]:
        """The rule's own site."""
        return target.exact(), memory
