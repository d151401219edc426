"""Which belief the rule looks at: the one before, the one after (implicit), or a trial in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from gaussfold.checks import one_of


@dataclass(frozen=True)
class Prior:
    """The belief before the observation: explicit, one evaluation. rvga (78)-(80)."""

    name: ClassVar[str] = "prior"
    code: ClassVar[int] = 0


@dataclass(frozen=True)
class Posterior:
    """The belief after the observation: implicit, two scalars to solve for. rvga (73)-(77)."""

    name: ClassVar[str] = "posterior"
    code: ClassVar[int] = 1


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
    """

    form: str = "natural"
    name: ClassVar[str] = "extragradient"
    _CODES: ClassVar[dict[str, int]] = {"natural": 2, "printed": 3, "mean-only": 4}

    def __post_init__(self) -> None:
        one_of("form", self.form, self._CODES)

    @property
    def code(self) -> int:
        """How the engine knows it."""
        return self._CODES[self.form]


At: TypeAlias = Prior | Posterior | Extragradient
_NAMES: dict[str, At] = {at.name: at for at in (Prior(), Posterior(), Extragradient())}


def resolve_at(at: str | At) -> At:
    """An ``at`` by name or as an object."""
    if isinstance(at, Prior | Posterior | Extragradient):
        return at
    if isinstance(at, str) and at in _NAMES:
        return _NAMES[at]
    msg = f"at={at!r}: allowed are {', '.join(map(repr, _NAMES))}, or an object from gaussfold.rules"
    raise ValueError(msg)
