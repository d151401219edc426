import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils import murmurhash3_32

import gaussfold as gf
from tests.reference.parsers import mix

pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")
MASK = 2**11 - 1


def murmur(text, seed=0):
    return murmurhash3_32(text, seed=seed, positive=True)


def test_every_slot_is_where_scikit_learns_hash_puts_it():
    frame = pl.DataFrame({"age": [31.5, None, -2.0], "city": ["Oslo", None, ""], "code": [7, 7, 8]})
    found = gf.hashing.FeatureHasher(bits=11, categorical=["code"]).fit_transform(frame)
    age, city, code = murmur("age"), murmur("city"), murmur("code")
    wanted = np.zeros((3, 2**11))
    wanted[0, [age & MASK, murmur("Oslo", city) & MASK, murmur("7", code) & MASK]] = 31.5, 1, 1
    wanted[1, [murmur("", age) & MASK, murmur("", city) & MASK, murmur("7", code) & MASK]] = 1
    wanted[2, [age & MASK, murmur("", city) & MASK, murmur("8", code) & MASK]] = -2.0, 1, 1
    np.testing.assert_array_equal(found.toarray(), wanted)


def test_pairs_are_products():
    frame = pl.DataFrame({"a": [2.0], "b": ["x"]})
    found = gf.hashing.FeatureHasher(bits=11, interact=["a,b"]).fit_transform(frame).toarray()[0]
    a, b = murmur("a"), murmur("x", murmur("b"))
    first, second = (a, b) if murmur("a") < murmur("b") else (b, a)
    assert found[mix(first, second) & MASK] == 2.0
    assert np.count_nonzero(found) == 3


def test_frames_of_every_make_hash_alike():
    columns = {"n": [0.5, -1.25], "c": ["é", "b"]}
    rows = [
        gf.hashing.FeatureHasher(bits=8).fit_transform(make(columns)).toarray() for make in (pl.DataFrame, pd.DataFrame)
    ]
    np.testing.assert_array_equal(rows[0], rows[1])


def test_unseen_categories_are_no_error_in_a_pipeline():
    frame = pl.DataFrame({"c": ["a", "b"] * 30})
    model = make_pipeline(
        gf.hashing.FeatureHasher(bits=8), gf.StreamingClassifier(covariance="diagonal", prior_std=1.0, scale=False)
    )
    model.fit(frame, [1, 0] * 30)
    p = model.predict_proba(pl.DataFrame({"c": ["a", "b", "new"]}))[:, 1]
    assert p[0] > 0.8
    assert p[1] < 0.2
    assert 0.3 < p[2] < 0.7


@pytest.mark.parametrize(("options", "words"), [({"bits": 0}, "bits=0"), ({"interact": ["abc"]}, "interact='abc'")])
def test_parameters_are_checked(options, words):
    hasher = gf.hashing.FeatureHasher(**options)
    with pytest.raises(ValueError, match=words):
        hasher.fit_transform(pl.DataFrame({"c": ["a"]}))


def test_only_frames_are_hashed():
    with pytest.raises(ValueError, match="a dataframe is needed"):
        gf.hashing.FeatureHasher().fit_transform(np.eye(2))
