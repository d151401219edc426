"""Names of features in a model file: by slot."""

from __future__ import annotations

import numpy as np

from gaussfold import schema
from gaussfold.data.reading import Reading

NAMES = (
    schema.Part("names.slots", ("names",), "whole", low=0, high="width"),
    schema.Part("names.sizes", ("names",), "whole", low=0, high=2.0**31),
    schema.Part("names.text", ("bytes",), "bytes"),
)
"""What a file holds if it keeps names."""


def arrays_of(names: dict[int, str]) -> dict[str, np.ndarray]:
    """Names as arrays."""
    slots = sorted(names)
    text = [names[slot].encode() for slot in slots]
    return {
        "names.slots": np.array(slots, np.int64),
        "names.sizes": np.array([len(raw) for raw in text], np.int64),
        "names.text": np.frombuffer(b"".join(text), np.uint8),
    }


def names_of(arrays: dict[str, np.ndarray], reading: Reading) -> dict[int, str] | None:
    """Names of slots, if a file keeps them."""
    if not schema.together(arrays, [part.name for part in NAMES]):
        return None
    sizes = schema.check(arrays, NAMES, {"width": reading.width})
    schema.equal("names.sizes", int(arrays["names.sizes"].sum()), sizes["bytes"], "as long as the text is")
    ends = np.cumsum(arrays["names.sizes"]).tolist()
    text = arrays["names.text"].tobytes()
    pieces = [text[a:b].decode() for a, b in zip([0, *ends[:-1]], ends, strict=True)] if ends else []
    return dict(zip(arrays["names.slots"].tolist(), pieces, strict=True))
