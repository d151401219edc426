"""Options in groups: a command takes dataclasses, and each of their fields is an option of its own."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, get_type_hints

import typer

from gaussfold.cli.errors import no_traceback

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def grouped(command: Callable[..., int]) -> Callable[..., None]:
    """Return the command as Typer wants it: one parameter per option, no traceback, its result as exit code.

    Errors are caught inside, because Typer would turn a broken pipe into an exit code of its own.
    """
    hints = get_type_hints(command, include_extras=True)
    options: list[inspect.Parameter] = []
    groups: dict[str, type[DataclassInstance]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if dataclasses.is_dataclass(hints[name]):
            groups[name] = hints[name]
            options += _fields(hints[name])
        else:
            options.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    def call(**given: object) -> None:
        with no_traceback():
            for name, group in groups.items():
                given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
            raise typer.Exit(command(**given))

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    call.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # what Typer reads
    call.__annotations__ = {option.name: option.annotation for option in options}
    return call


def _fields(group: type[DataclassInstance]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(group)
    ]
