"""The targets, found by looking into their folder, and the numbered cases of one."""

from __future__ import annotations

import importlib
import pkgutil
import tempfile
import tomllib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tests.fuzz import targets

Case: TypeAlias = Callable[[np.random.Generator, Path], None]
SEEDS = Path(__file__).with_name("seeds.toml")


def names() -> list[str]:
    """All targets."""
    return sorted(module.name for module in pkgutil.iter_modules(targets.__path__))


def load(name: str) -> Case:
    """The function that makes and tries one case."""
    case: Case = importlib.import_module(f"{targets.__name__}.{name}").case
    return case


def run(name: str, number: int) -> None:
    """Case ``number`` of a target, in a folder of its own."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), number])
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as folder:
        load(name)(rng, Path(folder))


def failed_once() -> list[tuple[str, int]]:
    """The cases that ever failed, from ``seeds.toml``."""
    seeds = tomllib.loads(SEEDS.read_text())
    return [(name, number) for name, numbers in seeds.items() for number in numbers]
