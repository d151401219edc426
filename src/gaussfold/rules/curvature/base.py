"""What a curvature policy is, and what it is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from gaussfold.rules.base import SiteRule, View
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.types import Array, Sites, VectorSite


class Target(NamedTuple):
    """What a site is to be made of: a rule, what it sees, the sites to be replaced and the step ρ of (9)."""

    rule: SiteRule
    view: View
    sites: Sites
    damping: float

    def exact(self) -> VectorSite:
        """The rule's own site."""
        return self.rule.site_several(self.view)


class Curvature(ABC):
    """A policy; the parent of all of them. A rule names those that are defined for it in ``rule.curvatures``.

    Attributes
    ----------
    name : str
        The name it goes by.
    is_exact : bool
        Whether the site is the rule's own, so that what holds at a rule's fixed point holds here.
    needs_each_site : bool
        Whether it looks at every site's own past, which sites that are tied to one factor do not have.
    bends_with_step : bool
        Whether the site depends on the step ρ beyond (9)'s mixture of old and new.

    Examples
    --------
    >>> import gaussfold as gf
    >>> [gf.rules.resolve_curvature(name).is_exact for name in gf.rules.Newton().curvatures]
    [True, False, False, False, False]
    """

    name: ClassVar[str]
    is_exact: ClassVar[bool] = False
    needs_each_site: ClassVar[bool] = False
    bends_with_step: ClassVar[bool] = False

    def informed(self, rule: SiteRule, memory: QuasiNewtonMemory | None, precision: Array) -> QuasiNewtonMemory | None:
        """What to remember of a first visit by this rule where good precisions (N, D, D) are known beforehand."""
        del rule, precision
        return memory

    @abstractmethod
    def site(self, target: Target, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory | None]:
        """The site to use, and what to remember of this visit."""
