"""SVMlight text, beside the textbook parser."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gaussfold.data.reading import Reading
from tests.fuzz.reading import assert_rows, is_plain, same_however_it_comes
from tests.fuzz.texts import label, line_end, noise, number, pick
from tests.reference import parsers


def _line(rng: np.random.Generator) -> str:
    words = [label(rng)]
    for _ in range(rng.integers(0, 7)):
        index = (
            str(int(rng.integers(0, 600)))
            if rng.random() < 0.8
            else pick(
                rng, ("0", "qid", "4294967296", "999999999999999999", "9999999999999999999", "-1", "x", "", "+3", "03")
            )
        )
        words.append(index + (":" if rng.random() < 0.97 else "") + number(rng))
    comment = pick(rng, ("", "", "", " # said", "#", " #1:2"))
    return pick(rng, (" ", " ", "  ", "\t")).join(words) + comment


def case(rng: np.random.Generator, folder: Path) -> None:
    """Lines from the grammar, now and then disturbed; read under several settings."""
    raw = noise(rng, "".join(_line(rng) + line_end(rng) for _ in range(rng.integers(0, 8))).encode())
    path = folder / "input.svm"
    path.write_bytes(raw)
    reading = Reading(bits=int(rng.choice([3, 9, 14])))
    found = same_however_it_comes(rng, path, reading, few=int(rng.integers(0, 3)))
    assert (found.error is not None) == (b"\0" in raw)
    text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if "\ufffd" in text or not is_plain(text):
        return
    wanted, bad = [], []
    for at, line in enumerate(text.split("\n"), 1):
        if not line.split("#")[0].strip():
            continue
        try:
            wanted.append((*parsers.svm_line(line, reading.bits), at))
        except parsers.Bad:
            bad.append(at)
    assert_rows(found, wanted)
    assert [int(told.removeprefix(f"{path}:").split(":")[0]) for told in found.bad] == bad
