"""How the features of one row share an observation in a diagonal belief."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self, TypeAlias

from gaussfold.checks import one_of
from gaussfold.registry import Catalogue

Form: TypeAlias = tuple[int, int, int]
"""How the engine knows a coupling: joint or marginal, how the mean is found, how the variance is."""
MEANS = ("solved", "one-step")
VARIANCES = ("curvature", "height")


@dataclass(frozen=True)
class Joint:
    """One site for the whole row; what it says beyond the diagonal is dropped. sparse-online D.1, D.2.

    Parameters
    ----------
    mean
        "solved": the site of the rule. "one-step": one Newton step towards the mode, (42)-(46); rule newton only.
    """

    mean: str = "solved"
    name: ClassVar[str] = "joint"

    def __post_init__(self) -> None:
        one_of("mean", self.mean, MEANS)

    @cached_property
    def form(self) -> Form:
        """How the engine knows it."""
        return (0, MEANS.index(self.mean), 0)


@dataclass(frozen=True)
class Marginal:
    """Each feature for itself, with the other features of the row integrated out. sparse-online §3.

    Parameters
    ----------
    mean
        "solved": at the mode, (15). "one-step": one Newton step towards it, (17); rule newton only.
    variance
        "curvature": of the log posterior at the new mean, (19). "height": such that the peaks are equally high, (18);
        rule newton only.
    """

    mean: str = "solved"
    variance: str = "curvature"
    name: ClassVar[str] = "marginal"

    def __post_init__(self) -> None:
        one_of("mean", self.mean, MEANS)
        one_of("variance", self.variance, VARIANCES)

    @cached_property
    def form(self) -> Form:
        """How the engine knows it."""
        return (1, MEANS.index(self.mean), VARIANCES.index(self.variance))

    @classmethod
    def from_form(cls, form: Form) -> Self:
        """The coupling whose ``form`` this is."""
        return cls(MEANS[form[1]], VARIANCES[form[2]])


Coupling: TypeAlias = Joint | Marginal
COUPLINGS: Catalogue[Coupling] = Catalogue(
    "coupling", (Marginal, Joint), also="Marginal(...) or Joint() from gaussfold.beliefs"
)


def resolve_coupling(coupling: str | Coupling) -> Coupling:
    """A coupling by name or as an object.

    Examples
    --------
    >>> resolve_coupling("marginal")
    Marginal(mean='solved', variance='curvature')
    """
    return COUPLINGS.resolve(coupling)


def coupling_from_form(form: Form) -> Coupling:
    """The coupling whose ``form`` this is."""
    return Joint(MEANS[form[1]]) if form[0] == 0 else Marginal.from_form(form)
