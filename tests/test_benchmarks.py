"""Benchmarks run, and the textbook loop they compare with is the algorithm they claim to compare."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks import dense
from benchmarks.registry import BENCHMARKS
from benchmarks.report import Report

import gaussfold as gf

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_the_textbook_loop_is_ours():
    X, y = dense._problem(6, 40)
    mean, cov = dense.textbook_rvga(X, y, 1.3)
    belief = gf.DenseGaussian.isotropic(6, 1.3)
    gf.fold(belief, gf.likelihoods.Bernoulli(expectation="probit"), X, y)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-4, atol=1e-5)  # its root finder stops at 1e-6
    np.testing.assert_allclose(belief.cov, cov, rtol=1e-4, atol=1e-6)


def test_report(tmp_path):
    report = Report("A title", ("d", "time"), [[10, 1.23456], [100, 123456.0]], ["a note"])
    assert report.table().splitlines()[2] == "| 10  | 1.23   |"
    report.write(tmp_path / "deep" / "out.json")
    written = json.loads((tmp_path / "deep" / "out.json").read_text())
    assert written["rows"] == [[10, 1.23456], [100, 123456.0]]
    assert written["machine"]["cores"] >= 1


def test_registry_names_modules_with_a_run():
    import importlib

    for module, title in BENCHMARKS.values():
        assert callable(importlib.import_module(module).run)
        assert title


def test_gp_data_are_what_they_say_and_an_absent_peer_is_named(monkeypatch, tmp_path):
    from benchmarks import gp

    data = gp.line(1000)
    assert data["X"].shape == (1000, 1)
    assert data["X_test"].shape == (100, 1)
    assert not set(data["X"][:, 0]) & set(data["X_test"][:, 0])
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1e4, (40_000, 1))
    f = gp.smooth(np.vstack([X, X + 1.3]), 1.0, 2.0, 3.0, rng)
    s = np.sqrt(3.0) * 1.3  # Matérn-3/2 at 1.3 length scales
    np.testing.assert_allclose(np.mean(f**2), 2.0, rtol=0.05)
    np.testing.assert_allclose(np.mean(f[:40_000] * f[40_000:]), 2.0 * (1.0 + s) * np.exp(-s), atol=0.15)
    monkeypatch.setenv("GAUSSFOLD_GPYTORCH_PYTHON", str(tmp_path / "python"))
    assert "GAUSSFOLD_GPYTORCH_PYTHON" in gp.measured("gpytorch", "sparse", tmp_path, {})["absent"]


def test_ranks_of_the_truth_are_flat_where_the_posterior_is_exact_and_not_where_it_is_too_sure(tmp_path):
    from benchmarks import ranks

    exact = ranks.Cell("gaussian", "full", "one pass", 0.8)
    found = np.array([ranks.ranks(exact, seed) for seed in range(150)])
    for level in ranks.LEVELS:  # the Kalman filter is the posterior
        low, high = ranks.band(150, level, 0.001)
        assert ((low <= ranks.covered(found, level)) & (ranks.covered(found, level) <= high)).all()
    single = ranks.Cell("gaussian", "diagonal", "one pass", 0.8)
    sure = np.array([ranks.ranks(single, seed) for seed in range(60)])
    assert ranks.covered(sure, 0.9)[0] < 0.7
    assert {cell.covariance for cell in ranks.cells(quick=False)} == {"full", "lowrank", "diagonal"}
    ranks.draw(tmp_path / "ranks.png", {exact: found, single: sure})
    assert (tmp_path / "ranks.png").stat().st_size > 10_000


@pytest.mark.skipif(not (DOCS / "gallery.md").is_file(), reason="docs/ is absent")
def test_the_gallery_says_what_the_ranks_said():
    from benchmarks import ranks

    page = (DOCS / "gallery" / "calibration.md").read_text(encoding="utf-8")
    rows = json.loads((DOCS / "gallery" / "calibration.json").read_text(encoding="utf-8"))["rows"]
    assert len(rows) == len(list(ranks.cells(quick=False)))
    for covariance, ways in ranks.WAYS.items():
        for way in ways:
            for correlations in [(0.0,), (0.8,)] if covariance == "diagonal" else [(0.0, 0.8)]:
                some = [r for r in rows if (r[0], r[1], r[3]) == (covariance, way, ranks.N) and r[4] in correlations]
                at_90 = np.array(some, dtype=object)[:, [6, 9, 12]].astype(int)
                where = f", correlation {correlations[0]:g}" if covariance == "diagonal" else ""
                cells = " | ".join(f"{low}–{high}" for low, high in zip(at_90.min(0), at_90.max(0), strict=True))
                assert f"| {covariance}, {way}{where} | {cells} |" in page


def test_streams_that_drift_move_as_they_say():
    from benchmarks import drift

    for kind in drift.KINDS:
        path = drift.paths(kind, 400, np.random.default_rng(1))
        moves = np.abs(np.diff(path, axis=0)).max(axis=1)
        assert path.shape == (400, drift.D)
        assert (moves > 0).sum() == {"none": 0, "sudden": 1, "recurring": 9}.get(kind, 399)
    X, y = drift.stream("sudden", "logistic", 300, 0)
    auto, *singles = drift.losses(drift.MODELS["logistic"], X, y, "drift_std", (0.0, 0.1))
    assert auto < singles[0]  # the coin has turned, and the bank has seen it
    assert auto < min(singles) + np.log(12) / 300 + 0.001
