"""Runs are kept in ``output/sparse``: tables and figures share them, and an interrupted run goes on where it was.

A file belongs to one stream, length and seed, and to these programs as they are: a change of this folder's sources
starts anew. After a change of the library itself delete the folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from experiments.registry import Context
from gaussfold.store.atomic import write_atomically

FOLDER = Path("output") / "sparse"


def kept(
    context: Context,
    key: tuple[Any, ...],
    names: Sequence[str],
    compute: Callable[[list[str]], dict[str, Any]],
) -> dict[str, Any]:
    """Numbers by name: from the file of this key as far as they are there, the others computed and added to it.

    A quick run (a test) keeps nothing and takes nothing.
    """
    if context.quick:
        return compute(list(names))
    digest = hashlib.sha256(f"{key!r} {_sources()}".encode()).hexdigest()[:16]
    path = FOLDER / f"{digest}.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    missing = [name for name in names if name not in found]
    if missing:
        found |= compute(missing)
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(found).encode())
    return {name: found[name] for name in names}


@cache
def _sources() -> str:
    """The programs that decide about the numbers; how they are drawn does not matter."""
    folder = Path(__file__).parent
    parts = (folder / f"{name}.py" for name in ("baselines", "learners", "sampled_vb", "streams"))
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()
