"""Generic functions: one name, many bodies, chosen by the type of a record when a loop is compiled.

``by_family`` is for functions whose first argument is a family's record, ``by_rule`` for those whose second one is a
rule's. A rule of one's own has a record type of its own and is chosen by it. The built-in rules share one record,
``BuiltInRule(number, alpha)``, and are chosen by its value while the loop runs: were they types too, every loop would
be compiled once for each of them. Called from Python the same functions run as plain Python, which is how they are
covered by tests and stepped through by a debugger.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

from numba.core.types.containers import BaseNamedTuple
from numba.extending import overload

from gaussfold.engine import seam
from gaussfold.engine.compiled import PART, part
from gaussfold.engine.seam import BuiltInRule

F = TypeVar("F", bound=Callable[..., object])


def _record_class(record: object) -> type:
    if isinstance(record, BaseNamedTuple):
        return record.instance_class  # type: ignore[no-any-return]
    msg = f"{record}: a family or a rule travels through the engine as a NamedTuple"
    raise TypeError(msg)


def _body(record: type, function: Callable[..., object], *, required: bool) -> Callable[..., object]:
    """What ``function`` is for a record: the registered body, or the default one."""
    known = seam.functions_of(record)
    name = function.__name__
    if required and name not in known:
        msg = f"{record.__qualname__} does not say {name}{inspect.signature(function)}; register it with compiled_for"
        raise TypeError(msg)
    return known.get(name, function)


def by_family(function: F, *, required: bool = False) -> F:
    """Make ``function(family, ...)`` generic; its own body serves the families that do not bring one."""

    @wraps(function)
    def from_python(*args: object) -> object:
        return _body(type(args[0]), function, required=required)(*args)

    @wraps(function)
    def choose(*args: object) -> Callable[..., object]:
        return _body(_record_class(args[0]), function, required=required)

    overload(from_python, jit_options=PART, strict=False)(choose)  # strict would compare annotations
    return cast(F, from_python)


def required(function: F) -> F:
    """As :func:`by_family`, where every family must bring its own."""
    return by_family(function, required=True)


def by_rule(function: F) -> F:
    """Make ``function(family, rule, ...)`` generic in the rule; its own body serves rules that do not bring one."""

    @wraps(function)
    def from_python(*args: object) -> object:
        rule = args[1]
        chosen = seam.built_in_rules()[rule.number] if isinstance(rule, BuiltInRule) else type(rule)
        return _body(chosen, function, required=False)(*args)

    @wraps(function)
    def choose(*args: object) -> Callable[..., object]:
        record = _record_class(args[1])
        return _by_number(function) if record is BuiltInRule else _body(record, function, required=False)

    overload(from_python, jit_options=PART, strict=False)(choose)  # strict would compare annotations
    return cast(F, from_python)


def _by_number(function: Callable[..., object]) -> Callable[..., object]:
    """Choose among the built-in rules by number, one branch each; a number that none of them has is an error."""
    arguments = ", ".join(inspect.signature(function).parameters)
    bodies = [_body(rule, function, required=False) for rule in seam.built_in_rules()]
    lines = [f"def {function.__name__}({arguments}):"]
    for number, body in enumerate(bodies):
        if body is not function:
            lines += [f"    if rule.number == {number}:", f"        return body_{number}({arguments})"]
    lines += [
        f"    if 0 <= rule.number < {len(bodies)}:",
        f"        return default({arguments})",
        "    raise ValueError('a rule of that number does not exist')",
    ]
    space: dict[str, object] = {f"body_{n}": part(body) for n, body in enumerate(bodies) if body is not function}
    space["default"] = part(function)
    exec("\n".join(lines), space)  # the branches are as many as there are rules
    return cast(Callable[..., object], space[function.__name__])
