"""A parameter is documented once: what a class inherits or hands on is quoted from where it is documented.

A docstring names entries of another class's numpydoc sections on a line of their own, ``%(rank, rule)s``; `documented`
puts them there, so that ``help`` shows everything. Indented lines below go on with the last of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_QUOTATION = re.compile(r"^( *)%\((\w+(?:, \w+)*)\)s *$", re.MULTILINE)
_SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^(\w+)(?:, \w+)*(?: :.*)?\n(?:(?: +.*)?(?:\n|\Z))+", re.MULTILINE)


def documented(*sources: type) -> Callable[[Class], Class]:
    r"""Fill in what a class's docstring quotes from those of ``sources``, the later before the earlier ones.

    Examples
    --------
    >>> class Base:
    ...     "What they share.\n\nParameters\n----------\nrank : int\n    How many factors."
    >>> @documented(Base)
    ... class Special(Base):
    ...     "One of them.\n\nParameters\n----------\n%(rank)s\n    More cost more."
    >>> inspect.getdoc(Special).splitlines()[-3:]
    ['rank : int', '    How many factors.', '    More cost more.']
    """
    known = {name: entry for source in sources for name, entry in entries(source).items()}

    def fill_in(cls: Class) -> Class:
        def quote(match: re.Match[str]) -> str:
            indent, names = match.groups()
            lines = "\n".join(known[name] for name in names.split(", ")).split("\n")
            return "\n".join(indent + line if line else "" for line in lines)

        if cls.__doc__ is not None:  # python -OO
            cls.__doc__ = _QUOTATION.sub(quote, cls.__doc__)
        return cls

    return fill_in


def entries(source: type) -> dict[str, str]:
    """The entries of a class's parameters and attributes, by (first) name, without indentation."""
    text = inspect.cleandoc(source.__doc__ or "") + "\n"
    sections = [match[2] for match in _SECTION.finditer(text)]
    return {match[1]: match[0].rstrip() for section in sections for match in _ENTRY.finditer(section)}
