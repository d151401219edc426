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

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

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


def on_first_use(name: str) -> ModuleType:
    """A module that is loaded when something in it is first looked up: for families, which must not wait for Numba."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        msg = f"no module named {name!r}"
        raise ModuleNotFoundError(msg)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# The engine's modules as families and rules import them from here; type checkers see the modules themselves.
if TYPE_CHECKING:
    from gaussfold.engine import families as families
    from gaussfold.engine import rules as rules
    from gaussfold.engine.arrays import expectations_logit as expectations_logit
    from gaussfold.engine.arrays import expectations_probit as expectations_probit
    from gaussfold.engine.arrays import over_arrays as over_arrays
    from gaussfold.engine.scalar import expectations as expectations
    from gaussfold.engine.scalar import initial_guess as initial_guess
    from gaussfold.engine.scalar import jets as jets
    from gaussfold.engine.scalar import logistic as logistic
    from gaussfold.engine.scalar import narrow as narrow
    from gaussfold.engine.scalar import ordered as ordered
    from gaussfold.engine.scalar import proportions as proportions
    from gaussfold.engine.scalar import quadrature as quadrature
    from gaussfold.engine.scalar import search as search
    from gaussfold.engine.scalar import sites as sites
    from gaussfold.engine.scalar import special as special
else:
    expectations_logit = on_first_use("gaussfold.engine.arrays.expectations_logit")
    expectations_probit = on_first_use("gaussfold.engine.arrays.expectations_probit")
    over_arrays = on_first_use("gaussfold.engine.arrays.over_arrays")
    families = on_first_use("gaussfold.engine.families")
    rules = on_first_use("gaussfold.engine.rules")
    expectations = on_first_use("gaussfold.engine.scalar.expectations")
    initial_guess = on_first_use("gaussfold.engine.scalar.initial_guess")
    jets = on_first_use("gaussfold.engine.scalar.jets")
    logistic = on_first_use("gaussfold.engine.scalar.logistic")
    narrow = on_first_use("gaussfold.engine.scalar.narrow")
    ordered = on_first_use("gaussfold.engine.scalar.ordered")
    proportions = on_first_use("gaussfold.engine.scalar.proportions")
    quadrature = on_first_use("gaussfold.engine.scalar.quadrature")
    search = on_first_use("gaussfold.engine.scalar.search")
    sites = on_first_use("gaussfold.engine.scalar.sites")
    special = on_first_use("gaussfold.engine.scalar.special")
