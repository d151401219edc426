"""Arrays that a file only claims to hold: each rule of the schema, and files that were altered and signed again."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.schema import Part, check, equal, part_of, together
from gaussfold.store import StoreError, decode_labels, decode_rng, encode_rng
from tests.fuzz.targets.model_files import Original, originals, signed

GOOD = {
    "mean": np.zeros(3),
    "factors": np.zeros((3, 2)),
    "gram": np.eye(2),
    "index": np.array([0, 2, 2]),
    "pointer": np.array([0, 1, 3]),
}
PARTS = (
    Part("mean", ("d",)),
    Part("factors", ("d", "p")),
    Part("gram", ("p", "p"), "double", symmetric=True),
    Part("index", ("n",), "whole", low=0, high="d"),
    Part("pointer", ("rows",), "whole", pointers="n"),
    Part("extra", ("d",), positive=True, optional=True),
)


def test_arrays_that_fit_tell_their_sizes():
    assert check(GOOD, PARTS) == {"d": 3, "p": 2, "n": 3, "rows": 3}
    assert check(GOOD, PARTS, {"d": 3}) == {"d": 3, "p": 2, "n": 3, "rows": 3}


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("mean", np.zeros(4), r"part 'factors': shape \(3, 2\); \(d=4, p\) is needed"),
        ("mean", np.zeros((3, 1)), r"part 'mean': shape \(3, 1\); \(d\) is needed"),
        ("mean", np.array([0.0, np.nan, 0.0]), "part 'mean': entry 1 is nan; finite numbers are needed"),
        ("mean", np.zeros(3, np.float32), "part 'factors': dtype float64; float32 as of 'mean' is needed"),
        ("mean", np.zeros(3, int), "part 'mean': dtype int64; float64 or float32"),
        ("gram", np.array([[1.0, 0.5], [0.0, 1.0]]), "part 'gram': two halves that differ by 0.5"),
        ("index", np.array([0, 3, 2]), "part 'index': entry 1 is 3; whole numbers >= 0 up to 2 are needed"),
        ("index", np.array([0, -1, 2]), "part 'index': entry 1 is -1"),
        ("pointer", np.array([0, 4, 3]), "part 'pointer': it does not lead from row to row; .* from 0 to 3"),
        ("pointer", np.array([1, 2, 3]), "part 'pointer'"),
        ("pointer", np.array([0, 1, 2]), "part 'pointer'"),
        ("pointer", np.empty(0, int), "part 'pointer'"),
        ("extra", np.array([1.0, 0.0, 1.0]), "part 'extra': entry 1 is 0.0; finite numbers > 0 are needed"),
        ("extra", np.array([1.0, np.inf, 1.0]), "part 'extra': entry 1 is inf"),
    ],
)
def test_what_does_not_fit_is_named(name, array, message):
    with pytest.raises(ValueError, match=message):
        check(GOOD | {name: array}, PARTS)


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match="part 'gram': missing"):
        check({name: array for name, array in GOOD.items() if name != "gram"}, PARTS)
    with pytest.raises(ValueError, match="part 'b': missing; 'a' needs it"):
        together({"a": np.zeros(1)}, ("a", "b"))
    assert not together({}, ("a", "b"))
    with pytest.raises(ValueError, match="part 'dim': 3; 4 is needed, so many cells"):
        equal("dim", 3, 4, "so many cells")
    assert part_of({"a.x": 1, "b": 2}, "a.") == {"x": 1}


def test_gaps_and_free_parts():
    labels = {"y": np.array([np.nan, 1.0])}
    check(labels, (Part("y", ("n",), gaps=True),))
    with pytest.raises(ValueError, match="entry 0 is inf"):
        check({"y": np.array([np.inf])}, (Part("y", ("n",), gaps=True),))
    check({"y": np.array([np.inf])}, (Part("y", ("n",), free=True),))


def test_a_bad_entry_far_behind_is_found_without_a_copy():
    array = np.ones((3 << 20, 2))
    array[-1, 0] = -1.0
    with pytest.raises(ValueError, match=f"entry {2 * len(array) - 2} is -1.0"):
        check({"a": array}, (Part("a", ("n", 2), positive=True),))
    with pytest.raises(ValueError, match=f"entry {len(array) - 1} is -1.0"):
        check({"a": array[:, 0]}, (Part("a", ("n",), positive=True),))


def original(kind: str) -> Original:
    return next(file for file in originals() if file.header["kind"] == kind)


def altered(tmp_path, kind, change):
    """A file of that kind whose header or arrays somebody has changed, signed again."""
    file = original(kind)
    header, arrays = json.loads(json.dumps(file.header)), {name: a.copy() for name, a in file.arrays.items()}
    change(header["model"], arrays)
    path = tmp_path / "altered"
    path.write_bytes(signed(header, arrays))
    return path


def setting(name, index, value):
    def change(_header, arrays):
        arrays[name][index] = value

    return change


def header_setting(*keys, value):
    def change(header, _arrays):
        for key in keys[:-1]:
            header = header[key]
        header[keys[-1]] = value

    return change


ALTERED = {
    "DenseGaussian": [("mean", 0, np.nan, "mean"), ("factor", (2, slice(None)), 0.0, "variances")],
    "DiagonalGaussian": [
        ("dim", 0, 10**9, "dim|seen|cells"), ("cells", (0, 1, 0), -1.0, "variances in cells"),
        ("coupling", 0, 7, "coupling"), ("log_weights", 0, 0.5, "log_weights"), ("kind", 0, 5, "kind"),
        ("seen", 1, 1e6, "seen"), ("clock", 0, np.inf, "clock"),
    ],
    "FactorGaussian": [("psi", 1, 0.0, "psi"), ("F", (0, 0), np.inf, "F")],
    "LowRankGaussian": [
        ("rows_indptr", 1, 2**30, "rows_indptr"), ("rows_indices", 0, 6, "rows_indices"), ("gram", (0, 1), 9.0, "gram"),
        ("options", 1, 1e9, "inner_loops"), ("options", 0, 9.0, "options=9"), ("psi", 0, -1.0, "psi"),
    ],
    "StreamModel": [
        ("belief.dim", 0, 66, "cells|dim"), ("names.slots", 0, 65, "names.slots"),
        ("names.sizes", 0, 10**6, "names.sizes"),
    ],
    "StreamingFactorAnalysis": [("stream.psi", 0, 0.0, "psi"), ("stream.count", (), -1, "count")],
    "GaussianProcess": [("X", (0, 0), np.nan, "X"), ("precision", (0, 0, 0), np.inf, "precision")],
    "StreamingClassifier": [("belief0.clock", 0, -1.0, "clock"), ("progress", 0, -3.0, "progress")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "place", "value", "said"), [(k, *row) for k, v in ALTERED.items() for row in v]
)
def test_an_altered_entry_is_refused_with_its_name(tmp_path, kind, name, place, value, said):
    with pytest.raises(StoreError, match=rf"altered': its contents do not make a {kind}: .*({said}).*; save the model"):
        gf.load(altered(tmp_path, kind, setting(name, place, value)))


@pytest.mark.parametrize(
    ("kind", "keys", "value"),
    [
        ("StreamModel", ("reading", "bits"), 30),
        ("StreamModel", ("reading", "constant"), False),
        ("StreamModel", ("setting", "prior_std"), 0.5),
        ("StreamModel", ("setting", "dtype"), "float32"),
        ("StreamModel", ("run", "rows"), -1),
        ("StreamingClassifier", ("n_features",), 10**9),
        ("StreamingClassifier", ("n_beliefs",), 10**9),
        ("StreamingClassifier", ("parameters", "covariance"), "full"),
        ("StreamingClassifier", ("rng",), 3),
        ("StreamingClassifier", ("classes", "values"), [1.0]),
        ("StreamingFactorAnalysis", ("n_features",), 10**9),
        ("GPRegressor", ("n_features",), 2),
        ("GPRegressor", ("scaling",), [0.0, 0.0]),
    ],
)
def test_a_header_that_does_not_fit_its_arrays_is_refused_without_making_room(tmp_path, kind, keys, value):
    path = altered(tmp_path, kind, header_setting(*keys, value=value))
    gf.registry.model_class(kind)  # what an import takes is not what is measured
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match=f"do not make a {kind}"):
            gf.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("file", originals(), ids=lambda file: file.header["kind"])
def test_every_array_is_missed(tmp_path, file):
    """Without one of its arrays a file is refused, or the model is one that never had it."""
    path = tmp_path / "altered"
    for name in file.arrays:
        path.write_bytes(signed(file.header, {other: a for other, a in file.arrays.items() if other != name}))
        try:
            found = gf.load(path)
        except StoreError:
            continue
        assert name not in found.state() or name.endswith("blank") or file.header["kind"] == "TrainingState"


def test_random_states_stay_inside_their_buffers():
    state = encode_rng(np.random.RandomState(3))
    state["state"]["state"]["pos"] = 10**6
    with pytest.raises(ValueError, match=r"pos=1000000; a whole number from 0 to 624"):
        decode_rng(state)
    state = encode_rng(np.random.Generator(np.random.Philox(3)))
    state["state"]["buffer_pos"] = 5
    with pytest.raises(ValueError, match="buffer_pos=5"):
        decode_rng(state)
    state = encode_rng(np.random.default_rng(3))
    state["seeds"]["pool_size"] = 2**40
    with pytest.raises(ValueError, match="pool_size"):
        decode_rng(state)


def test_labels_make_no_room_that_no_label_needs():
    with pytest.raises(ValueError, match="no label has more than 4096 characters"):
        decode_labels({"dtype": "<U100000000", "values": ["a", "b"]})
    with pytest.raises(ValueError, match="a list of numbers"):
        decode_labels({"dtype": "|O", "values": [None]})
    long = "x" * 5000
    assert decode_labels({"dtype": "<U5000", "values": [long]}).tolist() == [long]
