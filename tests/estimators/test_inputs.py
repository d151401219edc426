"""What X may be, and how bad rows are refused."""

import narwhals as nw
import narwhals.stable.v2 as stable
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from gaussfold import StreamingClassifier, StreamingPoissonRegressor, StreamingRegressor
from gaussfold.estimators import validation
from tests.estimators.streams import MODELS, labels, rows, same_state

NAMES = ["age", "height", "weight", "income"]
FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "pyarrow": lambda X: pa.table({name: X[:, j] for j, name in enumerate(NAMES)}),
    "narwhals": lambda X: nw.from_native(pl.DataFrame(X, schema=NAMES)),
    "narwhals v2": lambda X: stable.from_native(pd.DataFrame(X, columns=NAMES)),
}
SPARSE = {
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc_array": sp.csc_array,
    "coo_matrix": sp.coo_matrix,
    "lil_array": sp.lil_array,
    "sparse pandas": lambda X: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X)),
}
PLAIN = {
    "fortran": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "object": lambda X: X.astype(object),
    "pandas without names": pd.DataFrame,
}


@pytest.fixture
def data():
    X = rows()
    return X, labels("classes", X)


@pytest.mark.parametrize("make", [*FRAMES.values(), *PLAIN.values()], ids=[*FRAMES, *PLAIN])
def test_every_container_gives_the_array_s_model(make, data):
    X, y = data
    model = clone(MODELS["classes"]).fit(X, y, refine=0)
    other = clone(MODELS["classes"]).fit(make(X), y, refine=0)
    assert same_state(model, other)
    np.testing.assert_array_equal(other.predict_proba(make(X)), model.predict_proba(X))
    first, second = clone(MODELS["classes"]), clone(MODELS["classes"])
    for part in (slice(0, 25), slice(25, 60)):
        first.partial_fit(X[part], y[part], classes=np.unique(y))
        second.partial_fit(make(X[part]), y[part], classes=np.unique(y))
    assert same_state(first, second)


@pytest.mark.parametrize("make", SPARSE.values(), ids=SPARSE)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_rows_give_the_dense_model(make, fit_intercept):
    X = rows() * (np.random.default_rng(8).random((60, 4)) < 0.4)
    y = labels("gaussian", X)
    dense = clone(MODELS["gaussian"]).set_params(fit_intercept=fit_intercept).fit(X, y, refine=0)
    sparse = clone(dense).fit(make(X), y, refine=0)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-12)
    np.testing.assert_allclose(sparse.posterior_.cov, dense.posterior_.cov, rtol=1e-12, atol=1e-14)
    for got, want in zip(sparse.predict(make(X), return_std=True), dense.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(sparse.sample_latent(make(X), 3, rng=1), dense.sample_latent(X, 3, rng=1), atol=1e-12)


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_column_names_are_kept_and_checked(make, data):
    X, y = data
    model = StreamingClassifier(prior_std=1.0, scale=False).fit(make(X), y, refine=0)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.feature_names_in_.dtype == object
    swapped = make(X)
    order = ["height", "age", "weight", "income"]
    swapped = swapped.select(order) if hasattr(swapped, "select") else swapped[order]
    for call in (model.predict, model.predict_latent, lambda X: model.partial_fit(X, y)):
        with pytest.raises(ValueError, match="same order"):
            call(swapped)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


def test_names_of_one_make_match_those_of_another(data):
    X, y = data
    model = StreamingClassifier(prior_std=1.0, scale=False).fit(FRAMES["polars"](X), y, refine=0)
    again = model.predict_proba(FRAMES["pyarrow"](X))
    np.testing.assert_array_equal(again, model.predict_proba(FRAMES["pandas"](X)))


def test_mixed_numeric_columns():
    frame = pl.DataFrame({"a": [1, 2, 3], "b": [True, False, True], "c": [0.5, 1.5, -2.5]})
    X = np.array([[1, 1, 0.5], [2, 0, 1.5], [3, 1, -2.5]])
    model = StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False).fit(frame, [1.0, 2.0, 0.3], refine=0)
    assert same_state(
        model, StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False).fit(X, [1.0, 2.0, 0.3], refine=0)
    )
    assert same_state(
        model,
        StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False).fit(frame.to_pandas(), [1.0, 2.0, 0.3], refine=0),
    )
    assert same_state(
        model,
        StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False).fit(frame.to_arrow(), [1.0, 2.0, 0.3], refine=0),
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "make", [*FRAMES.values(), sp.csr_array, sp.csc_matrix, np.asarray], ids=[*FRAMES, "csr", "csc", "array"]
)
def test_the_first_bad_entry_is_named(make, bad, data):
    X, y = data
    X[[31, 7, 7], [0, 2, 3]] = bad
    what = "NaN" if np.isnan(bad) else "infinity"
    with pytest.raises(ValueError, match=f"X: row 7 has {what} in column 2"):
        StreamingClassifier(prior_std=1.0, scale=False).fit(make(X), y, refine=0)


def test_a_bad_entry_in_a_frame_is_named_by_its_column():
    frame = pl.DataFrame({"age": [31, None, 20], "height": [1.7, 1.6, 1.9]})
    for make in (frame, frame.to_pandas(), frame.to_arrow()):
        with pytest.raises(ValueError, match=r"X: row 1 has NaN in column 0 \('age'\)"):
            StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False).fit(make, [0.0, 1.0, 2.0], refine=0)


def test_text_columns_are_named():
    frame = pl.DataFrame({"age": [31, 5, 20], "city": ["Bonn", "Lyon", "Oslo"]})
    for make in (frame, frame.to_pandas(), frame.to_arrow()):
        with pytest.raises(ValueError, match=r"column 'city' .* does not hold numbers"):
            StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False).fit(make, [0.0, 1.0, 2.0], refine=0)


def test_lazy_and_ambiguous_frames_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match=r"X is a lazy frame; collect it first"):
        StreamingClassifier(prior_std=1.0, scale=False).fit(FRAMES["polars"](X).lazy(), y, refine=0)
    with pytest.raises(ValueError, match=r"X is a lazy frame; collect it first"):
        StreamingClassifier(prior_std=1.0, scale=False).fit(FRAMES["narwhals"](X).lazy(), y, refine=0)
    with pytest.raises(ValueError, match="more than one column named 'age'"):
        StreamingClassifier(prior_std=1.0, scale=False).fit(
            pd.DataFrame(X, columns=["age", "age", "b", "c"]), y, refine=0
        )


def test_huge_but_finite_entries_pass_the_door():
    X = np.array([[1e308, 1e308], [-1.0, 2.0]])  # their sum overflows
    np.testing.assert_array_equal(
        validation.rows(StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False), X, reset=True), X
    )


def test_an_empty_row_says_nothing_about_weights_without_an_intercept():
    X = rows(20)
    y = labels("gaussian", X)
    model = StreamingRegressor(fit_intercept=False, prior_std=1.0, noise_std=1.0, scale=False).fit(X, y, refine=0)
    before = model.state()
    model.partial_fit(np.zeros((1, 4)), [3.0])
    np.testing.assert_array_equal(model.state()["belief0.mean"], before["belief0.mean"])
    np.testing.assert_array_equal(model.state()["belief0.factor"], before["belief0.factor"])
    assert model.n_observations_ == 21


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -0.5, 1.0], r"sample_weight: row 1 is -0\.5; finite numbers >= 0 are allowed"),
        ([1.0, 1.0, np.nan], "sample_weight: row 2 is nan"),
        ([np.inf, 1.0, 1.0], "sample_weight: row 0 is inf"),
        ([1.0, 1.0], r"sample_weight: shape \(2,\); \(3,\) is needed"),
        ([[1.0], [1.0], [1.0]], r"sample_weight: shape \(3, 1\)"),
        (["a", "b", "c"], "sample_weight: .*; numbers are needed"),
        ([0.0, 0.0, 0.0], "sample_weight is zero on every row"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False).fit(
            [[1.0], [2.0], [3.0]], [0.0, 1.0, 2.0], sample_weight=weight, refine=0
        )


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False), [0.0, np.inf, 1.0], r"y\[1\] = inf"),
        (
            StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False),
            [0.0, "x", 1.0],
            r"y\[1\] = 'x' is not a number",
        ),
        (
            StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False),
            [np.nan, None, np.nan],
            "y has no row with a label",
        ),
        (
            StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False),
            None,
            "requires y to be passed, but the target y is None",
        ),
        (StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False), [0.0, 1.0], "y has 2 labels but X has 3 rows"),
        (StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False), [1j, 2j, 3j], "y|omplex"),
        (
            StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False),
            np.array([1j, 2j, 3j]),
            "Complex data not supported",
        ),
        (
            StreamingPoissonRegressor(prior_std=1.0, scale=False),
            [0, 3, -1],
            r"y\[2\] = -1\.0: Poisson labels must be whole numbers >= 0",
        ),
        (StreamingPoissonRegressor(prior_std=1.0, scale=False), [0, 2.5, 1], r"y\[1\] = 2\.5"),
        (StreamingPoissonRegressor(target="rate", prior_std=1.0, scale=False), [0, 2.5, -0.1], r"y\[2\] = -0\.1"),
        (StreamingPoissonRegressor(dispersion=2.0, prior_std=1.0, scale=False), [0, 2.5, 1], r"y\[1\] = 2\.5"),
        (StreamingClassifier(prior_std=1.0, scale=False), [1, 1, 1], "one class only"),
        (StreamingClassifier(prior_std=1.0, scale=False), ["a", np.nan, "a"], "one class only"),
    ],
)
def test_bad_labels(model, y, message):
    with pytest.raises(ValueError, match=message):
        clone(model).fit([[1.0], [2.0], [3.0]], y, refine=0)


def test_columns_of_labels_from_any_library():
    X = rows(5)
    want = StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False).fit(X, [1.0, 2.0, np.nan, 0.5, -1.0], refine=0)
    values = [1.0, 2.0, None, 0.5, -1.0]
    for y in (
        values,
        pd.Series(values),
        pd.Series(values, dtype="Float64"),
        pd.Series([1.0, 2.0, pd.NA, 0.5, -1.0], dtype=object),
        pl.Series(values),
        pa.chunked_array([values]),
    ):
        assert same_state(StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False).fit(X, y, refine=0), want)
    for w in (pd.Series([2.5] * 5), pl.Series([2.5] * 5), [2.5] * 5, 2.5):
        got = StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False).fit(X, values, sample_weight=w, refine=0)
        assert same_state(
            got,
            StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False).fit(
                X, values, sample_weight=np.full(5, 2.5), refine=0
            ),
        )


@pytest.mark.parametrize("make", ["pandas", "polars"])
def test_dates_are_refused_with_what_to_do_instead(make):
    frames = pytest.importorskip(make)
    when = np.datetime64("2024-01-01", "us") + np.arange(6) * np.timedelta64(86_400_000_000, "us")
    frame = frames.DataFrame({"a": np.arange(6.0), "when": when})
    y = np.array([0, 1, 0, 1, 1, 0])
    model = StreamingClassifier()
    for dates in (frame, frames.DataFrame({"when": when}), frames.DataFrame({"how long": when - when[0]})):
        with pytest.raises(ValueError, match=r"X: column '.*' holds dates or durations .* the days since"):
            model.fit(dates, y)
    with pytest.raises(ValueError, match=r"^X holds dates or durations"):
        model.fit(when[:, None], y)
    with pytest.raises(ValueError, match=r"^y holds dates or durations"):
        StreamingRegressor().fit(np.ones((6, 1)), when)
    assert not hasattr(model, "classes_")


def test_texts_are_refused_with_what_to_do_instead():
    with pytest.raises(ValueError, match=r"X: could not convert string to float: .*OneHotEncoder"):
        StreamingClassifier().fit(np.array([["red"], ["blue"]]), [0, 1])
