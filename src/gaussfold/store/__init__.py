"""Model files: named arrays and one JSON header in the safetensors format, no pickle.

Loading a file can only ever build one of the classes that `gaussfold.registry` knows. A file is written beside its
target, synced and renamed, so a crash leaves the old file or the new one, never a mixture.

``models`` takes a model apart and puts it together, ``layout`` is the file format and its versions, ``codecs`` are
labels and random states as JSON, ``atomic`` writes. What must not break: a loaded model goes on bit for bit, files of
every earlier format still load (`layout.MIGRATIONS`), nothing in a file is ever executed, and nothing is built of
arrays that were not checked against each other: every class that can be stored says in records of `gaussfold.schema`
what its arrays are like. Whatever is wrong with a file, `load` raises a StoreError.
"""

from gaussfold.registry import MODELS as KINDS
from gaussfold.store.codecs import decode_labels, decode_rng, encode_labels, encode_rng
from gaussfold.store.layout import MissingFileError, StoreError, digest, safetensors_pieces
from gaussfold.store.models import load, save

# Names of 0.1.0, by which programs of ours make files of their own and sign them again.
_digest, _safetensors = digest, safetensors_pieces

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
