"""Vowpal Wabbit text, beside the textbook parser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gaussfold.data.reading import Reading
from tests.fuzz.reading import assert_rows, is_plain, same_however_it_comes
from tests.fuzz.texts import label, line_end, name, noise, number, pick
from tests.reference import parsers


def _line(rng: np.random.Generator) -> str:
    parts = []
    if rng.random() < 0.85:
        parts.append(label(rng))
        if rng.random() < 0.3:
            parts.append(number(rng))
            if rng.random() < 0.2:
                parts.append(pick(rng, ("0", "0.0", "1", "x")))
    if rng.random() < 0.2:
        parts.append(pick(rng, ("'tag", "'", "'a'b", "tag")))
    blank = pick(rng, (" ", " ", "  ", "\t"))
    head = blank.join(parts) + (blank if rng.random() < 0.9 else "")
    return head + pick(rng, ("|", "|", "|", "|", "|", "")) + "|".join(_space(rng) for _ in range(rng.integers(1, 4)))


def _space(rng: np.random.Generator) -> str:
    words = [name(rng) if rng.random() < 0.7 else ""]
    if rng.random() < 0.1:
        words[0] += ":" + number(rng)
    words += [name(rng) + (":" + number(rng) if rng.random() < 0.4 else "") for _ in range(rng.integers(0, 5))]
    if rng.random() < 0.1:
        words += [":" + number(rng) for _ in range(rng.integers(1, 4))]  # without a name
    return pick(rng, (" ", " ", " ", "  ", "\t")).join(words) + (" " if rng.random() < 0.5 else "")


def _used(reading: Reading) -> Callable[[str], bool]:
    """Which namespaces are read: a letter stands for all that begin with it."""

    def among(space: str, names: tuple[str, ...]) -> bool:
        return any((space[:1] or " ") == each if len(each) == 1 and each.isascii() else space == each for each in names)

    return lambda space: among(space, reading.keep) if reading.keep else not among(space, reading.ignore)


def case(rng: np.random.Generator, folder: Path) -> None:
    """Lines from the grammar, now and then disturbed; read under several settings."""
    lines = [_line(rng) + line_end(rng) for _ in range(rng.integers(0, 8))]
    raw = noise(rng, "".join(lines).encode())
    if rng.random() < 0.1:
        raw = raw.removesuffix(b"\n")
    path = folder / "input.vw"
    path.write_bytes(raw)
    interact = ((), (), ("::",), ("ab",))[int(rng.integers(4))]
    hashing = pick(rng, ("strings", "all"))
    spaces = {}
    if rng.random() < 0.2:
        spaces = {pick(rng, ("keep", "ignore")): tuple(name(rng) for _ in range(rng.integers(1, 3)))}
    reading = Reading(bits=int(rng.choice([3, 9, 14])), interact=interact, hash=hashing, **spaces)
    keep_names = bool(rng.random() < 0.3)
    found = same_however_it_comes(rng, path, reading, few=int(rng.integers(0, 3)), keep_names=keep_names)
    assert (found.error is not None) == (b"\0" in raw)
    text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if "\ufffd" in text or not is_plain(text) or interact == ("ab",):
        return
    all_pairs = (lambda _p, _q: True) if interact else None
    wanted, bad = [], []
    for at, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = parsers.vw_line(line.removesuffix("\r"), reading.bits, all_pairs, hashing, _used(reading))
            wanted.append((*row[:3], at))
        except parsers.Bad:
            bad.append(at)
    assert_rows(found, wanted)
    assert [int(told.removeprefix(f"{path}:").split(":")[0]) for told in found.bad] == bad
