"""Frames as sources: what is learned of them is what is learned of files with their rows, in their order."""

import contextlib

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.distributed import Scheme, fitting
from gaussfold.distributed.frames import files_in
from tests.distributed.helpers import Here

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
SMALL = Scheme(head=200, most=6)


def table(n=1500):
    rng = np.random.default_rng(3)
    effect = rng.normal(size=25)
    user, age = rng.integers(0, 25, n), rng.normal(size=n)
    click = rng.random(n) < 1.0 / (1.0 + np.exp(-effect[user] - 0.5 * age))
    return pd.DataFrame({"click": click.astype(int), "user": user.astype(str), "age": age})


def new():
    return gf.StreamingClassifier(covariance="diagonal", prior_std="auto")


class Lazy:
    """A frame of partitions, as Dask has it."""

    __module__ = "dask.dataframe"

    def __init__(self, parts):
        self._parts = parts

    def to_parquet(self, folder, write_index):
        from pathlib import Path

        assert write_index is False
        Path(folder).mkdir()
        for k, part in enumerate(self._parts):
            part.to_parquet(f"{folder}/part.{k}.parquet", index=False)


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(fitting, "_engine", lambda _client, workers: contextlib.nullcontext(Here(workers or 0)))


def test_a_frame_is_its_rows_in_their_order(here, tmp_path):
    pytest.importorskip("distributed")
    rows = table()
    parts = [rows[a : a + 100] for a in range(0, 1500, 100)]  # 15: part.10 comes after part.9
    for k, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{k:03d}.parquet", index=False)
    columns = {"label": "click", "bits": 10, "scheme": SMALL}
    files = gf.distributed.fit(new(), str(tmp_path / "*.parquet"), **columns)
    frame = gf.distributed.fit(new(), Lazy(parts), workers=1, staging=tmp_path, **columns)
    np.testing.assert_array_equal(frame.coef_, files.coef_)
    assert frame.progressive_log_loss_ == files.progressive_log_loss_
    assert not list(tmp_path.glob("gaussfold-*"))


def test_files_stand_in_the_order_of_their_numbers(tmp_path):
    for name in ("part.10.parquet", "part.9.parquet", "part.2.parquet", "_SUCCESS", ".part.1.parquet.crc"):
        (tmp_path / name).touch()
    assert [name.split(".")[-2] for name in files_in(tmp_path, ".parquet")] == ["2", "9", "10"]


def test_what_is_no_source_is_refused(tmp_path):
    model = new()
    with pytest.raises(ValueError, match="source: a dict; paths, a Dask or Spark DataFrame"):
        gf.distributed.fit(model, {}, label="click")
    with pytest.raises(ValueError, match=r"staging=.*no such folder"):
        gf.distributed.fit(model, Lazy([]), label="click", staging=tmp_path / "nowhere")
    assert not hasattr(model, "n_features_in_")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Dask's own
def test_a_dask_frame_is_learned_by_its_cluster(tmp_path):
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    from distributed import Client, LocalCluster

    frame = dd.from_pandas(table(), npartitions=12)
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        one = gf.distributed.fit(new(), frame, label="click", bits=10, scheme=SMALL)
        two = gf.distributed.fit(new(), frame, label="click", bits=10, scheme=SMALL, client=client)
    assert one.n_observations_ == 1500
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Dask's own
def test_a_dask_array_is_a_frame_of_its_columns(tmp_path):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    rng = np.random.default_rng(12)
    X = rng.normal(size=(1500, 3))
    rows = np.column_stack([X[:, :2], rng.random(1500) < 1.0 / (1.0 + np.exp(-X @ [1.0, -2.0, 0.5])), X[:, 2]])
    one = gf.distributed.fit(new(), da.from_array(rows, chunks=(400, 2)), label="x2", bits=10, scheme=SMALL, workers=1)
    path = tmp_path / "rows.parquet"
    pd.DataFrame(rows, columns=["x0", "x1", "x2", "x3"]).to_parquet(path)
    two = gf.distributed.fit(new(), path, label="x2", bits=10, workers=1)
    assert one.n_observations_ == 1500
    np.testing.assert_allclose(one.coef_, two.coef_, atol=0.1)
    assert np.abs(two.coef_).max() > 0.5
    with pytest.raises(ValueError, match=r"source: a Dask Array of shape \(1500,\)"):
        gf.distributed.fit(new(), da.from_array(rows[:, 0]), label="x2")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_ray_dataset_is_learned_by_its_cluster(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="gaussfold[ray] is not installed")
    import os
    from pathlib import Path

    root = Path(__file__).parents[2]
    places = os.pathsep.join(map(str, (root / "src", root)))
    ray.init(
        num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": places}},
    )  # fmt: skip
    try:
        rows = ray.data.from_pandas([table()[:700], table()[700:]])
        one = gf.distributed.fit(new(), rows, label="click", bits=10, scheme=SMALL)
    finally:
        ray.shutdown()
    assert one.n_observations_ == 1500
    assert one.progressive_log_loss_ < 0.66
