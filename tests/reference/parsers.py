"""Textbook parsers: Python per token, scikit-learn's hash. Rows are (label, weight, {slot: value})."""

from __future__ import annotations

import contextlib
import itertools
import math

from sklearn.utils import murmurhash3_32


class Bad(Exception):  # noqa: N818
    pass


def murmur(text, seed=0):
    return murmurhash3_32(text, seed=seed, positive=True)


def number(text):
    if not text or text[0] in "_ " or "_" in text or text.strip("+-").lower() in ("nan", "inf", "infinity"):
        raise Bad(text)
    try:
        value = float(text)
    except ValueError as error:
        raise Bad(text) from error
    if not text.isascii() or text != text.strip():
        raise Bad(text)
    return value


def feature_value(text):
    value = number(text)
    if not abs(value) <= 1e30:
        raise Bad(text)
    return value


def binary(text):
    value = number(text)
    if value not in (-1.0, 0.0, 1.0):
        raise Bad(text)
    return 1.0 if value == 1.0 else 0.0


def mix(first, second):
    h = ((first * 16777619) & 0xFFFFFFFF) ^ second
    h ^= h >> 16
    h = (h * 0x85EBCA6B) & 0xFFFFFFFF
    h ^= h >> 13
    h = (h * 0xC2B2AE35) & 0xFFFFFFFF
    return h ^ (h >> 16)


def close(groups, bits, wanted=None, constant=True, squares=False):
    """groups: list of (name, hash, [(hash, value)]); wanted(name, name) says which pairs to multiply."""
    entries = [entry for _, _, features in groups for entry in features]
    for (i, left), (j, right) in itertools.combinations_with_replacement(enumerate(groups), 2):
        if wanted is None or not (wanted(left[0], right[0]) or wanted(right[0], left[0])):
            continue
        first, second = (right, left) if i != j and left[1] > right[1] else (left, right)
        if i == j:
            pairs = itertools.combinations_with_replacement(first[2], 2)
            pairs = [(a, b) for a, b in pairs if squares or a is not b or a[1] != 1.0]
            pairs = [(a, b) if a[0] <= b[0] else (b, a) for a, b in pairs]
        else:
            pairs = itertools.product(first[2], second[2])
        entries = entries + [(mix(a[0], b[0]), a[1] * b[1]) for a, b in pairs]
    row = {}
    for h, value in entries:
        slot = h & ((1 << bits) - 1)
        row[slot] = row.get(slot, 0.0) + value
    if constant:
        row[1 << bits] = 1.0
    return row


def vw_hash(name, seed, hashing="strings"):
    """Vowpal Wabbit's --hash strings: a name of digits is a number."""
    digits = hashing == "strings" and name.isascii() and name.isdigit()
    return (seed + int(name)) % 2**32 if digits else murmur(name, seed)


def vw_line(line, bits, wanted=None, hashing="strings", used=lambda name: True):
    head, bar, rest = line.partition("|")
    if not bar:
        raise Bad("no bar")
    words = head.split()
    tag = ""
    if words and (not head[-1].isspace()) and not words[-1].startswith("'"):
        tag = words.pop()
    plain = [word for word in words if not word.startswith("'")]
    if len(plain) > 3 or (len(plain) == 3 and number(plain[2]) != 0.0):
        raise Bad("base")
    label = binary(plain[0]) if plain else math.nan
    weight = number(plain[1]) if len(plain) > 1 else 1.0
    if not 0.0 <= weight <= 1e30:
        raise Bad("weight")
    groups = []
    for section in rest.split("|"):
        named = bool(section) and not section[0].isspace()
        tokens = section.split()
        name, scale = "", 1.0
        if named:
            name, colon, text = tokens.pop(0).partition(":")
            scale = feature_value(text) if colon else 1.0
        seed = murmur(name)
        features = []
        nameless = itertools.count()
        for token in tokens:
            feature, colon, text = token.partition(":")
            value = number(text) if colon else 1.0
            if not abs(value * scale) <= 1e30:  # what is learned counts, not what is written
                raise Bad("large")
            h = vw_hash(feature, seed, hashing) if feature else (seed + next(nameless)) % 2**32
            if value * scale != 0.0:
                features.append((h, value * scale))
        if used(name):
            groups.append((name, seed, features))
    return label, weight, close(groups, bits, wanted, squares=True), tag


def svm_line(line, bits):
    words = line.split("#")[0].split()
    label = binary(words[0])
    features = []
    for word in words[1:]:
        index, colon, text = word.partition(":")
        if not colon:
            raise Bad(word)
        if index == "qid":
            feature_value(text)
            continue
        if not (index.isascii() and index.isdigit() and len(index) <= 18):
            raise Bad(index)
        h = int(index) if int(index) < 1 << bits else murmur(index)
        features.append((h, feature_value(text)))
    return label, 1.0, close([("", 0, features)], bits)


def csv_rows(text, columns, bits, separator=",", wanted=None):
    """columns: (name, kind) pairs; no header in the text.

    Bad records are left out. After one, whatever is wrong with it, the next *line* is looked at, not the next record:
    a quote may be what is missing.
    """
    text = text if text.endswith("\n") or not text else text + "\n"
    at = 0
    while at < len(text):
        if text.startswith(("\n", "\r\n"), at):
            at = text.index("\n", at) + 1
            continue
        fields, after = _csv_record(text, at, len(columns), separator)
        at = text.index("\n", at) + 1
        with contextlib.suppress(Bad):
            if fields is not None:
                yield csv_row(fields, columns, bits, wanted)
                at = after


def _csv_record(text, at, n_columns, separator):
    fields = []
    while True:
        if text[at] == '"':
            field, at = "", at + 1
            while True:
                if at >= len(text):
                    return None, at
                if text[at] == '"' and text[at + 1 : at + 2] == '"':
                    field, at = field + '"', at + 2
                elif text[at] == '"':
                    break
                else:
                    field, at = field + text[at], at + 1
            at += 1
            if text.startswith("\r\n", at):
                at += 1
            if at >= len(text) or text[at] not in (separator, "\n"):
                return None, at
        else:
            start = at
            while text[at] not in (separator, "\n"):
                at += 1
            field = text[start:at]
            if text[at] == "\n" and field.endswith("\r"):
                field = field[:-1]
        fields.append(field)
        at += 1
        if text[at - 1] == "\n":
            return (fields if len(fields) == n_columns else None), at
        if len(fields) == n_columns:
            return None, at


def csv_row(fields, columns, bits, wanted=None):
    label, weight, groups = math.nan, 1.0, []
    for (name, kind), field in zip(columns, fields, strict=True):
        seed, trimmed = murmur(name), field.strip(" \t")
        missing = trimmed.lower() in ("", "na", "n/a", "nan", "null", "none", "?")
        if kind == "label" and not missing:
            label = binary(trimmed)
        elif kind == "weight":
            weight = number(trimmed)
            if not 0.0 <= weight <= 1e30:
                raise Bad(trimmed)
        elif kind == "number":
            feature = (murmur("", seed), 1.0) if missing else (seed, feature_value(trimmed))
            groups.append((name, seed, [feature]))
        elif kind == "category":
            groups.append((name, seed, [(murmur(field, seed), 1.0)]))
    return label, weight, close(groups, bits, wanted)
