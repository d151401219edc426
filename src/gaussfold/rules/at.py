"""Which belief the rule looks at: the one before, the one after (implicit), or a trial in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from gaussfold.checks import one_of
from gaussfold.registry import Catalogue
from gaussfold.rules.implicit import Look, after, implicit_site

# Three small classes of one form, that of the protocol a rule is handed: what differs is in ``site``.


@dataclass(frozen=True)
class Prior:
    """The belief before the observation: explicit, one evaluation. rvga (78)-(80).

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> def look(m, v):  # newton at a Poisson count of 9
    ...     return 9.0 - np.exp(m), -np.exp(m)
    >>> precision, shift = gf.rules.Prior().site(look, m0=0.0, v0=1.0)
    >>> print(f"N({shift / (1 + precision):.2f}, {1 / (1 + precision):.2f})")  # far out: it believed the slope at 0
    N(4.00, 0.50)
    """

    name: ClassVar[str] = "prior"
    code: ClassVar[int] = 0
    is_implicit: ClassVar[bool] = False

    def site(self, look: Look, m0: float, v0: float) -> tuple[float, float]:
        """Precision and shift of the site made there, when the marginal before is N(m0, v0)."""
        gradient, curvature = look(m0, v0)
        return -curvature, gradient - curvature * m0


@dataclass(frozen=True)
class Posterior:
    """The belief after the observation: implicit, two scalars to solve for. rvga (73)-(77).

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> def look(m, v):  # newton at a Poisson count of 9
    ...     return 9.0 - np.exp(m), -np.exp(m)
    >>> precision, shift = gf.rules.Posterior().site(look, m0=0.0, v0=1.0)
    >>> m = shift / (1 + precision)
    >>> print(f"N({m:.2f}, {1 / (1 + precision):.2f})")
    N(1.95, 0.12)
    >>> abs(9 - np.exp(m) - m) < 1e-9  # the mode: the slope of log p and that of the prior cancel
    np.True_
    """

    name: ClassVar[str] = "posterior"
    code: ClassVar[int] = 1
    is_implicit: ClassVar[bool] = True

    def site(self, look: Look, m0: float, v0: float) -> tuple[float, float]:
        """Precision and shift of the site that the rule makes at the very belief it leads to."""
        return implicit_site(look, m0, v0)


@dataclass(frozen=True)
class Extragradient:
    """A trial belief made with the prior form; its site updates the *original* belief (mirror-prox).

    Parameters
    ----------
    form
        "natural" multiplies the original belief by the trial's site, and is exact for Gaussian data.
        "printed" follows lrvga (137)-(140), whose mean step ignores that the gradient was taken at the trial mean
        (so it is not exact even for Gaussian data). "mean-only" is lrvga (141)-(143): the covariance keeps the first
        site.

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> def look(m, v):  # newton at a Poisson count of 3
    ...     return 3.0 - np.exp(m), -np.exp(m)
    >>> precision, shift = gf.rules.Extragradient().site(look, m0=0.0, v0=1.0)
    >>> print(f"N({shift / (1 + precision):.2f}, {1 / (1 + precision):.2f})")
    N(0.81, 0.27)
    """

    form: str = "natural"
    name: ClassVar[str] = "extragradient"
    is_implicit: ClassVar[bool] = False
    _CODES: ClassVar[dict[str, int]] = {"natural": 2, "printed": 3, "mean-only": 4}

    def __post_init__(self) -> None:
        one_of("form", self.form, self._CODES)

    @property
    def code(self) -> int:
        """How the engine knows it."""
        return self._CODES[self.form]

    def site(self, look: Look, m0: float, v0: float) -> tuple[float, float]:
        """Precision and shift by the trial belief's site, in the form asked for: lrvga (137)-(143)."""
        gradient, curvature = look(m0, v0)
        m1, v1 = after(-curvature, gradient - curvature * m0, m0, v0)
        gradient_there, curvature_there = look(m1, v1)
        if self.form == "natural":
            return -curvature_there, gradient_there - curvature_there * m1
        kept = curvature_there if self.form == "printed" else curvature
        return -kept, gradient_there - kept * m0


At: TypeAlias = Prior | Posterior | Extragradient
ATS: Catalogue[At] = Catalogue("at", (Prior, Posterior, Extragradient), also="an object from gaussfold.rules")


def resolve_at(at: str | At) -> At:
    """An ``at`` by name or as an object.

    Parameters
    ----------
    at
        "prior", "posterior", "extragradient", or one of the objects that these stand for.

    Examples
    --------
    >>> resolve_at("posterior")
    Posterior()
    >>> resolve_at(Extragradient(form="printed"))
    Extragradient(form='printed')
    """
    return ATS.resolve(at)
