"""``gf.data.read``: the rows that the command line reads, for Python."""

import gzip

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading


def test_rows_of_text_are_those_of_the_command_line(tmp_path):
    path = tmp_path / "clicks.vw.gz"
    with gzip.open(path, "wt") as file:
        for i in range(3000):
            file.write(f"{1 if i % 3 else -1} {1 + i % 2}.5 |user u{i % 7} |ad a{i % 5}:{0.25 * (i % 9)}\n")
    batches = list(gf.data.read(path, bits=10, interact=["ua"], constant=True, chunk_bytes=1 << 14))
    assert len(batches) > 3
    whole = list(Stream(path, Reading(bits=10, interact=("ua",)), copy=True))
    for ours, theirs in (("y", "label"), ("weight", "weight")):
        got = np.concatenate([getattr(batch, ours) for batch in batches])
        np.testing.assert_array_equal(got, np.concatenate([getattr(chunk, theirs) for chunk in whole]))
    assert sum(batch.X.sum() for batch in batches) == pytest.approx(sum(chunk.X.sum() for chunk in whole))
    assert batches[0].X.shape[1] == 1025


def test_tables_with_roles_go_into_an_estimator(tmp_path):
    rng = np.random.default_rng(1)
    size, town = rng.uniform(0.5, 2.0, 400), rng.choice(["Bern", "Basel"], 400)
    price = 2.0 * size + np.where(town == "Bern", 1.0, 0.0) + 0.1 * rng.normal(size=400)
    path = tmp_path / "houses.csv"
    lines = (f"{p},{s},{t},7,2.5" for p, s, t in zip(price, size, town, strict=True))
    path.write_text("price,size,town,id,trust\n" + "\n".join(lines) + "\n")
    model = gf.StreamingRegressor(covariance="diagonal", noise_std="learn")
    options = {"label": "price", "labels": "real", "weight": "trust", "ignore": ["id"], "bits": 8}
    for X, y, weight in gf.data.read(path, **options):
        model.partial_fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(weight, 2.5)
    batch = next(iter(gf.data.read(path, **options)))
    assert np.corrcoef(model.predict(batch.X), batch.y)[0, 1] > 0.95
    assert model.n_observations_ == 400


def test_options_are_checked_at_the_door(tmp_path):
    with pytest.raises(ValueError, match="labels='numbers'"):
        gf.data.read(tmp_path / "x.csv", labels="numbers")
    with pytest.raises(ValueError, match="format='excel'"):
        gf.data.read(tmp_path / "x.csv", file_format="excel")
