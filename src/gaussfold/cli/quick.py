"""What is usually typed, taken without Typer's machinery, which costs more time than reading ten thousand rows.

Only what is plainly right is taken: known options with values that are what they should be. Of anything else (an
unknown option, ``--help``, a value that may be another option, a number out of range) nothing is taken, and Typer
answers as it always does. So there is nothing to be told apart but how long it takes.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, NamedTuple, get_args

_WHOLE, _NUMBER = re.compile(r"\d{1,15}"), re.compile(r"\d{1,15}(\.\d{0,15})?([eE][+-]?\d{1,2})?")
_COMPLETION = "_GAUSSFOLD_COMPLETE"


class _Option(NamedTuple):
    """An option as it may be typed: which parameter it sets, to what (None: to the next word), and of which type."""

    parameter: str
    value: bool | None
    kind: type
    several: bool
    low: float | None
    high: float | None


class _NotPlainError(Exception):
    """Something for Typer."""


def taken(
    words: Sequence[str], commands: Mapping[str, Callable[..., None]]
) -> tuple[Callable[..., None], dict[str, object]] | None:
    """The command that the words name, and its arguments; None if they are not plain."""
    if not words or words[0] not in commands or _COMPLETION in os.environ:
        return None
    command = commands[words[0]]
    try:
        return command, _arguments(words[1:], inspect.signature(command))
    except _NotPlainError:
        return None


def _need(plain: bool) -> None:
    if not plain:
        raise _NotPlainError


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _arguments(words: Sequence[str], signature: inspect.Signature) -> dict[str, object]:
    options, positional = _options(signature)
    given: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if not _is_option(word):
            _need(positional is not None)
            given.setdefault(str(positional), []).append(word)
            continue
        option, text = _typed(word, options)
        _need(option.several or option.parameter not in given)
        value = option.value if option.value is not None else _value(next(rest, "--") if text is None else text, option)
        given[option.parameter] = [*given.get(option.parameter, []), value] if option.several else value
    for name, each in signature.parameters.items():
        _need(each.default is not each.empty or name in given)
    return {name: given.get(name, each.default) for name, each in signature.parameters.items()}


def _typed(word: str, options: Mapping[str, _Option]) -> tuple[_Option, str | None]:
    """The option that a word is, and the value that stands in it, if any."""
    name, equals, text = word.partition("=") if word.startswith("--") else (word, "", "")
    _need(name in options)
    _need(not equals or options[name].value is None)
    return options[name], text if equals else None


_FORMS = {int: _WHOLE, float: _NUMBER, str: re.compile(r".+", re.DOTALL)}


def _value(text: str, option: _Option) -> object:
    _need(not _is_option(text))
    _need(_FORMS[option.kind].fullmatch(text) is not None)
    value = option.kind(text)
    _need(option.low is None or value >= option.low)
    _need(option.high is None or value <= option.high)
    return value


def _options(signature: inspect.Signature) -> tuple[dict[str, _Option], str | None]:
    """Options by what is typed for them, and the parameter that other words are for."""
    found: dict[str, _Option] = {}
    positional = None
    for name, parameter in signature.parameters.items():
        kind, info = get_args(parameter.annotation)
        kind, several = _kind_of(kind)
        # The first name of an option stands where a default would, as it does in an annotation.
        names = [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]
        if not names:
            _need(several)
            positional = name
        for declared in names:
            for value, typed in zip((True, False), declared.split("/"), strict=False):
                found[typed] = _Option(name, value if kind is bool else None, kind, several, info.min, info.max)
    return found, positional


def _kind_of(kind: Any) -> tuple[type, bool]:
    """The type of a value, and whether there may be several."""
    if isinstance(kind, UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    inner = get_args(kind)
    return (inner[0], True) if inner else (kind, False)
