"""Runs that are kept in ``output/``, one file per problem, method and data set: an interruption loses one run at most.

A file answers for the settings in its name only. After a change of the library that moves the iterates, delete the
folder, or the files of the methods concerned.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.bayes_newton.methods import Trace
from experiments.registry import Context

FOLDER = Path("output") / "bayes-newton"


def kept(name: str, make: Callable[[], tuple[Trace, Any]], context: Context) -> Trace:
    """The trace in ``name``.json if it is there, else a new one, which is written (whole or not at all)."""
    if context.quick:
        return make()[0]
    path = FOLDER / f"{name}.json"
    if path.is_file():
        return Trace(**json.loads(path.read_text(encoding="utf-8")))
    trace, _ = make()
    FOLDER.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".part{os.getpid()}")
    part.write_text(json.dumps(asdict(trace)), encoding="utf-8")
    part.replace(path)
    return trace
