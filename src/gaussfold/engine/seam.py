"""Where families and rules hand their compiled functions to the engine: two tables, and nothing that needs Numba.

A likelihood family travels through the engine as a record, a NamedTuple of its parameters; a rule likewise. The files
of the family and of the rule say, beside their Python definitions, what the engine is to run for that record::

    class LaplaceRecord(NamedTuple):
        scale: float

    @compiled_for(LaplaceRecord)
    def log_density(family, y, f):
        return -abs(y - f) / family.scale - math.log(2.0 * family.scale)

The generic functions of ``engine.families`` and ``engine.rules`` pick these up by the record's *type* when a loop is
compiled, so that a family compiles only itself, and whatever a record does not define has a default or is an error,
never another family's formula. Importing this module, and hence a likelihood, costs nothing: Numba is loaded by the
first loop that runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., object])
Functions = dict[str, Callable[..., object]]

_TABLE: dict[type, Functions] = {}
_BUILT_IN_RULES: list[type] = []


class BuiltInRule(NamedTuple):
    """How the built-in rules travel: which of them, and the power that only ep has."""

    number: int
    alpha: float


# The functions registered here have the parameters of the generic ones in ``engine.families`` and ``engine.rules``, so
# that those of two families or rules are alike on purpose: a loop is compiled with the one in the other's place.


def compiled_for(*records: type) -> Callable[[F], F]:
    """Register a function, by its name, as what the engine compiles for records of these types."""

    def keep(function: F) -> F:
        for record in records:
            _TABLE.setdefault(record, {})[function.__name__] = function
        return function

    return keep


def functions_of(record: type) -> Functions:
    """What is registered for a type of record, by name; a type of which nothing is known is an error."""
    if record not in _TABLE:
        msg = (
            f"{record.__module__}.{record.__qualname__}: the engine knows no functions for this record; register "
            "log_density and derivatives with gaussfold.engine.seam.compiled_for, or leave record = None"
        )
        raise TypeError(msg)
    return _TABLE[record]


def number_built_in(*rules: type) -> None:
    """Give the built-in rules their numbers: their order, which is that of the branches in the engine."""
    _BUILT_IN_RULES[:] = rules


def built_in_rules() -> tuple[type, ...]:
    """The built-in rules in the order of their numbers."""
    return tuple(_BUILT_IN_RULES)
