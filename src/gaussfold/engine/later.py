"""The engine's modules as families and rules import them: loaded when something in them is first looked up.

A likelihood or a rule must not wait for Numba, so what it hands to the engine (``engine.seam``) takes the modules it
calls from here: ``from gaussfold.engine.later import families, special``. Type checkers see the modules themselves.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING


def _on_first_use(name: str) -> ModuleType:
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


if TYPE_CHECKING:
    from gaussfold.engine import families as families
    from gaussfold.engine import rules as rules
    from gaussfold.engine.arrays import expectations_logit as expectations_logit
    from gaussfold.engine.arrays import expectations_probit as expectations_probit
    from gaussfold.engine.arrays import over_arrays as over_arrays
    from gaussfold.engine.scalar import expectations as expectations
    from gaussfold.engine.scalar import initial_guess as initial_guess
    from gaussfold.engine.scalar import logistic as logistic
    from gaussfold.engine.scalar import quadrature as quadrature
    from gaussfold.engine.scalar import search as search
    from gaussfold.engine.scalar import sites as sites
    from gaussfold.engine.scalar import special as special
else:
    expectations_logit = _on_first_use("gaussfold.engine.arrays.expectations_logit")
    expectations_probit = _on_first_use("gaussfold.engine.arrays.expectations_probit")
    over_arrays = _on_first_use("gaussfold.engine.arrays.over_arrays")
    families = _on_first_use("gaussfold.engine.families")
    rules = _on_first_use("gaussfold.engine.rules")
    expectations = _on_first_use("gaussfold.engine.scalar.expectations")
    initial_guess = _on_first_use("gaussfold.engine.scalar.initial_guess")
    logistic = _on_first_use("gaussfold.engine.scalar.logistic")
    quadrature = _on_first_use("gaussfold.engine.scalar.quadrature")
    search = _on_first_use("gaussfold.engine.scalar.search")
    sites = _on_first_use("gaussfold.engine.scalar.sites")
    special = _on_first_use("gaussfold.engine.scalar.special")
