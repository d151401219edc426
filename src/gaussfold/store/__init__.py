"""Model files: named arrays and one JSON header in the safetensors format, no pickle.

Loading a file can only ever build one of the classes that `gaussfold.registry` knows. A file is written beside its
target, synced and renamed, so a crash leaves the old file or the new one, never a mixture.

``models`` takes a model apart and puts it together, ``layout`` is the file format and its versions, ``codecs`` are
labels and random states as JSON, ``atomic`` writes. What must not break: a loaded model goes on bit for bit, files of
every earlier format still load (`layout.MIGRATIONS`), and nothing in a file is ever executed.
"""

from gaussfold.registry import MODELS as KINDS
from gaussfold.store.codecs import decode_labels, decode_rng, encode_labels, encode_rng
from gaussfold.store.layout import MissingFileError, StoreError
from gaussfold.store.models import load, save

__all__ = [
    "KINDS",
    "MissingFileError",
    "StoreError",
    "decode_labels",
    "decode_rng",
    "encode_labels",
    "encode_rng",
    "load",
    "save",
]
