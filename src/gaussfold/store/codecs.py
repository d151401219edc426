"""Labels and random states as JSON, exactly: what a model file's header needs besides plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from gaussfold.registry import Json
from gaussfold.schema import refuse

_LABEL_KINDS = "iufbUO"
_LONGEST_LABEL = 4096
"""Characters for which a label's dtype may have room, if no label is longer."""
_STATE_LIMITS = {"pos": 624, "buffer_pos": 4, "has_uint32": 1, "has_gauss": 1, "pool_size": 64}
"""The largest that these may be: the generators use them as they are, as places in a buffer."""
_BIT_GENERATORS = {
    family.__name__: family
    for family in (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)
}


def encode_labels(labels: np.ndarray) -> dict[str, Json]:
    """Turn a 1-D array of labels into JSON of which `decode_labels` makes the same array, dtype included.

    Parameters
    ----------
    labels
        Integers, floats, booleans, strings, or an object array of such.

    Examples
    --------
    >>> encode_labels(np.array(["no", "yes"]))
    {'dtype': '<U3', 'values': ['no', 'yes']}
    >>> decode_labels(encode_labels(np.array([False, True])))
    array([False,  True])
    """
    array = np.asarray(labels)
    if array.ndim != 1:
        msg = f"labels: shape {array.shape}; a one-dimensional array is needed"
        raise ValueError(msg)
    if array.dtype.kind not in _LABEL_KINDS or (array.dtype.itemsize > 8 and array.dtype.kind == "f"):
        msg = f"labels: dtype {array.dtype}; allowed are integers, floats up to 64 bits, booleans and strings"
        raise ValueError(msg)
    values = [value.item() if isinstance(value, np.generic) else value for value in array.tolist()]
    for row, value in enumerate(values):
        if not isinstance(value, str | bool | int | float):
            msg = f"labels: row {row} is {value!r}; allowed are integers, floats, booleans and strings"
            raise ValueError(msg)  # noqa: TRY004 - a bad value inside an array, not a bad argument type
    return {"dtype": array.dtype.str, "values": values}


def decode_labels(document: Mapping[str, Any]) -> np.ndarray:
    """Return the array that `encode_labels` was given."""
    dtype = np.dtype(document["dtype"])
    if dtype.kind not in _LABEL_KINDS:
        msg = f"labels: dtype {dtype}; allowed are integers, floats, booleans and strings"
        raise ValueError(msg)
    values = document["values"]
    if not isinstance(values, list) or not all(isinstance(value, str | bool | int | float) for value in values):
        msg = "labels: a list of numbers, booleans and strings is needed"
        raise ValueError(msg)
    longest = max([_LONGEST_LABEL, *(len(value) for value in values if isinstance(value, str))])
    if dtype.itemsize > 4 * longest:  # room is made for each
        msg = f"labels: dtype {dtype}; no label has more than {longest} characters"
        raise ValueError(msg)
    labels = np.empty(len(values), dtype)
    labels[:] = values
    return labels


def encode_rng(random_state: object) -> Json:
    """``None``, a seed, a ``Generator`` or a ``RandomState`` as JSON, with everything it will ever draw.

    The seed sequence goes along, so that ``spawn`` continues too.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> twin = decode_rng(encode_rng(rng))
    >>> bool((rng.normal(size=4) == twin.normal(size=4)).all())
    True
    """
    if random_state is None:
        return None
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        bits = random_state.bit_generator
        _bit_generator(type(bits).__name__)
        spawn = bits.seed_seq.state if isinstance(bits.seed_seq, np.random.SeedSequence) else None
        return {"type": "Generator", "state": _plain(bits.state), "seeds": _plain(spawn)}
    if isinstance(random_state, np.random.RandomState):
        state = dict(random_state.get_state(legacy=False))
        _bit_generator(state["bit_generator"])
        return {"type": "RandomState", "state": _plain(state)}
    msg = f"random_state: {random_state!r}; allowed are None, an integer, a Generator and a RandomState"
    raise ValueError(msg)


def decode_rng(document: Any) -> Any:
    """Return the random state that `encode_rng` was given, about to draw the same numbers."""
    if document is None or isinstance(document, int):
        return document
    _check_limits(document)
    state = _arrays(document["state"])
    family = _bit_generator(state["bit_generator"])
    if document["type"] == "RandomState":
        old = np.random.RandomState(family())
        old.set_state(state)
        return old
    seeds = _arrays(document["seeds"])  # seeded by an array, as estimators do with a RandomState
    bits = family(np.random.SeedSequence(**seeds) if seeds is not None else None)
    bits.state = state
    return np.random.Generator(bits)


def decode_generator(document: object) -> np.random.Generator:
    """A random state that must be a ``Generator``: one that is drawn from."""
    found = decode_rng(document)
    if not isinstance(found, np.random.Generator):
        refuse("rng", f"a {type(found).__name__}", "a Generator is needed")
    return found


def _check_limits(document: object, name: str = "") -> None:
    """Refuse places that lie outside of a generator's buffer, however deep they stand."""
    if isinstance(document, dict):
        for key, value in document.items():
            _check_limits(value, key)
    elif name in _STATE_LIMITS and not (isinstance(document, int) and 0 <= document <= _STATE_LIMITS[name]):
        msg = f"random_state: {name}={document!r}; a whole number from 0 to {_STATE_LIMITS[name]} is needed"
        raise ValueError(msg)


def _bit_generator(name: str) -> type[np.random.BitGenerator]:
    if name not in _BIT_GENERATORS:
        msg = f"random_state: bit generator {name!r}; allowed are {', '.join(_BIT_GENERATORS)}"
        raise ValueError(msg)
    return _BIT_GENERATORS[name]


def _plain(value: object) -> Json:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "array": value.tolist()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return cast("Json", value.item() if isinstance(value, np.generic) else value)


def _arrays(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"dtype", "array"}:
            if np.dtype(value["dtype"]).kind not in "iu":
                msg = f"random_state: dtype {value['dtype']!r}; whole numbers are needed"
                raise ValueError(msg)
            return np.array(value["array"], dtype=value["dtype"])
        return {key: _arrays(item) for key, item in value.items()}
    return value
