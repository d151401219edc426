"""Class labels of any make become positions, missing ones are marked, bad ones are named."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gaussfold.estimators import labels

NAN = float("nan")


def encoded(y, classes=None):
    found = labels.read(y, len(y), "Owner")
    known = labels.find_classes(found, classes)
    return known, labels.encode(found, known)


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        (["b", "a", "b"], ["a", "b"], [1, 0, 1]),
        (["b", NAN, "a"], ["a", "b"], [1, NAN, 0]),
        (["b", None, "a"], ["a", "b"], [1, NAN, 0]),
        ([7, 3, None, 3], [3, 7], [1, 0, NAN, 0]),
        ([True, False, None], [False, True], [1, 0, NAN]),
        (np.array([-1, 1, 1]), [-1, 1], [0, 1, 1]),
        (np.array([2.0, NAN, 5.0]), [2.0, 5.0], [0, NAN, 1]),
        (np.array([3, 1, 2], dtype=np.uint8), [1, 2, 3], [2, 0, 1]),
        (np.array(["x", "y"], dtype=object), ["x", "y"], [0, 1]),
        (np.array([0, True], dtype=object), [0, 1], [0, 1]),
        (np.array(["v", "u"], dtype=np.dtypes.StringDType()), ["u", "v"], [1, 0]),
        (pd.Series(["a", None, "b"]), ["a", "b"], [0, NAN, 1]),
        (pd.Series(["a", None, "b"], dtype="string"), ["a", "b"], [0, NAN, 1]),
        (pd.Series([1, None, 0], dtype="Int64"), [0, 1], [1, NAN, 0]),
        (pd.Series([True, None, False], dtype="boolean"), [0, 1], [1, NAN, 0]),
        (pd.Series(pd.Categorical(["u", "v", None])), ["u", "v"], [0, 1, NAN]),
        (pl.Series(["a", None, "b"]), ["a", "b"], [0, NAN, 1]),
        (pl.Series([True, None, False]), [False, True], [1, NAN, 0]),
        (pa.chunked_array([["a", None], ["b"]]), ["a", "b"], [0, NAN, 1]),
        (pa.chunked_array([[1, None, 4]]), [1, 4], [0, NAN, 1]),
        ([0.0, 0.3, 1.0, NAN], [0, 1], [0.0, 0.3, 1.0, NAN]),
    ],
)
def test_any_labels(y, classes, codes):
    known, got = encoded(y)
    assert known.tolist() == classes
    np.testing.assert_array_equal(got, codes)


def test_announced_classes_are_sorted_and_need_not_all_occur():
    known, codes = encoded(["m"], classes=["z", "m", "a"])
    assert known.tolist() == ["a", "m", "z"]
    np.testing.assert_array_equal(codes, [1])


def test_soft_labels_agree_with_hard_ones():
    known, codes = encoded([0.25, 1.0], classes=[False, True])
    assert known.dtype == bool
    np.testing.assert_array_equal(codes, [0.25, 1.0])


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        ([1, 1, 1], None, r"one class only \(1\).*classes="),
        ([None, NAN], None, "no labelled row.*classes="),
        ([0, 1], [0], r"classes=\[0\] is one class"),
        ([0, 1], [0, None], "classes must not contain missing"),
        ([0, 1], [[0, 1]], "classes must be a list"),
        ([0, 1], [], "classes must be a list"),
        (["a", "b", "q"], ["a", "b"], r"y\[2\] = 'q' is not one of the classes \['a', 'b'\]"),
        ([0, 1, None, 7], [0, 1], r"y\[3\] = 7 is not one"),
        (["0", "1"], [0, 1], r"y\[0\] = '0' is not one"),
        ([0.2, 0.5], ["a", "b"], "continuous.*need the classes 0 and 1"),
        ([0.2, 0.5], [0, 1, 2], "continuous.*need the classes 0 and 1"),
        ([0.2, NAN, 1.5], None, r"continuous: y\[2\] = .*1\.5.*StreamingRegressor"),
        ([0.2, -0.5], [0, 1], r"y\[1\]"),
        ([0.0, 1.0, float("inf")], None, "infinity at row 2"),
        (np.array([0.0, np.inf]), None, "infinity at row 1"),
        ([1, "a"], None, "Unknown label type: y mixes text and numbers, first at row 1"),
        ([1, {"x": 2}], None, "Unknown label type: y holds a dict, first at row 1"),
        (np.array([b"a", b"b"]), None, "Unknown label type: y has dtype"),
        (np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"), None, "Unknown label type"),
    ],
)
def test_bad_labels_are_named(y, classes, message):
    with pytest.raises(ValueError, match=message):
        encoded(y, classes)


def test_nan_in_a_list_of_text_is_missing_and_not_a_class():
    # numpy.asarray(["a", nan]) would make it the label "nan"
    known, codes = encoded(["a", NAN, "b"])
    assert known.tolist() == ["a", "b"]
    assert np.isnan(codes[1])


def test_wrong_length_is_named():
    with pytest.raises(ValueError, match="y has 3 labels but X has 4 rows"):
        labels.read([0, 1, 0], 4, "Owner")
