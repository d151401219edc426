"""Leaves what a class inherits from other packages to their own documentation."""

from __future__ import annotations

import inspect
from typing import Any


def skip(app: Any, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """Whether to leave a member out; None: as autodoc would."""
    del app, what, name, skipped, options
    if isinstance(thing, property):
        thing = thing.fget
    home = getattr(inspect.unwrap(thing) if callable(thing) else thing, "__module__", None)
    return None if home is None or home.startswith("gaussfold") else True


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
