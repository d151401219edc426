"""Dates as inputs: any unit, pandas with time zones, and what is refused."""

import datetime

import numpy as np
import pandas as pd
import pytest

import gaussfold as gf
from gaussfold.gp import GaussianProcess, Matern32

DAYS = np.datetime64("2024-03-01") + np.arange(20)
Y = np.sin(np.arange(20.0) / 3.0)


def process(**options):
    return GaussianProcess(Matern32(1.0, 4.0), gf.likelihoods.Gaussian(0.3), structure="markov", **options)


def test_the_same_dates_in_another_unit():
    gp = process().fit(DAYS, Y)
    plain = process().fit(np.arange(20.0), Y)
    want = plain.predict([3.0, 4.25, 30.0])
    seconds = DAYS[0] + np.array([3 * 86400, 4 * 86400 + 6 * 3600, 30 * 86400]).astype("timedelta64[s]")
    np.testing.assert_allclose(gp.predict(seconds), want, rtol=1e-9)
    np.testing.assert_allclose(gp.predict(pd.DatetimeIndex(seconds)), want, rtol=1e-9)
    np.testing.assert_allclose(gp.predict(list(seconds.astype(datetime.datetime))), want, rtol=1e-9)
    np.testing.assert_allclose(gp.sample_posterior(seconds, 2, 0), plain.sample_posterior([3.0, 4.25, 30.0], 2, 0))


def test_pandas_is_counted_in_days_and_named_units_in_those():
    for index in (pd.DatetimeIndex(DAYS), pd.Series(DAYS.astype("datetime64[ns]")), DAYS.astype("datetime64[us]")):
        gp = process().fit(index, Y)
        np.testing.assert_allclose(gp.X_[:, 0] - gp.X_[0, 0], np.arange(20.0))
    hours = process(time_unit="h").fit(pd.DatetimeIndex(DAYS), Y)
    np.testing.assert_allclose(hours.X_[:, 0] - hours.X_[0, 0], 24.0 * np.arange(20.0))


def test_time_zones_are_moments():
    utc = pd.DatetimeIndex(DAYS).tz_localize("UTC")
    gp = process().fit(utc, Y)
    np.testing.assert_allclose(gp.predict(utc[:5].tz_convert("Asia/Tokyo")), gp.predict(utc[:5]), rtol=1e-12)
    with pytest.raises(ValueError, match="have no time zone where"):
        gp.predict(DAYS[:2])
    mixed = np.array([utc[0].to_pydatetime(), datetime.datetime(2024, 3, 2)], dtype=object)
    with pytest.raises(ValueError, match="mixes dates with a time zone"):
        process().fit(mixed, Y[:2])


def test_mixtures_are_refused():
    utc = pd.DatetimeIndex(DAYS).tz_localize("UTC")
    gp = process().fit(utc, Y)
    before = gp.predict(utc)
    with pytest.raises(ValueError, match="X mixes time zones; convert them to one first"):
        gp.fit(np.array([utc[0], utc[1].tz_convert("Asia/Tokyo")], dtype=object), Y[:2])
    with pytest.raises(ValueError, match="X mixes dates and what is none: entry 1 is None"):
        gp.predict(np.array([utc[0], None], dtype=object))
    with pytest.raises(ValueError, match=r"X holds text \('2024-03-01'\); give dates"):
        gp.predict(["2024-03-01", "2024-03-02"])
    np.testing.assert_array_equal(gp.predict(utc), before)


def test_what_is_refused_leaves_the_model_as_it_was():
    gp = process().fit(DAYS, Y)
    before = gp.predict(DAYS)
    gap = DAYS.copy()
    gap[3] = np.datetime64("NaT")
    for bad, why in ((gap, r"X\[3\] is NaT"), (np.arange(3.0), "X holds numbers"), (DAYS - DAYS[0], "durations")):
        with pytest.raises(ValueError, match=why):
            gp.predict(bad)
    with pytest.raises(ValueError, match=r"X\[3\] is NaT"):
        gp.fit(gap, Y)
    with pytest.raises(ValueError, match="X holds numbers"):
        gp.partial_fit([1.0], [0.0])
    np.testing.assert_array_equal(gp.predict(DAYS), before)
    with pytest.raises(ValueError, match="X holds dates, and the model was fitted on numbers"):
        process().fit(np.arange(20.0), Y).predict(DAYS)


def test_streams_and_files_keep_the_unit(tmp_path):
    gp = process()
    for rows in np.split(np.arange(20), 4):
        gp.partial_fit(DAYS[rows].astype("datetime64[h]") if rows[0] else DAYS[rows], Y[rows])
    want = process().fit(DAYS, Y).predict(DAYS + 1)
    np.testing.assert_allclose(gp.predict(DAYS + 1), want, rtol=1e-6)
    gf.save(gp, tmp_path / "gp")
    np.testing.assert_allclose(gf.load(tmp_path / "gp").predict((DAYS + 1).astype("datetime64[s]")), want, rtol=1e-6)


@pytest.mark.parametrize("unit", ["W", "h", "ms", "us", "ns"])
def test_length_scales_in_any_unit(unit):
    step = np.timedelta64(4, "D") / np.timedelta64(1, unit)
    gp = GaussianProcess(
        Matern32(1.0, float(step)), gf.likelihoods.Gaussian(0.3), structure="markov", time_unit=unit
    ).fit(DAYS, Y)
    later = DAYS[:3].astype("datetime64[h]") + np.timedelta64(5, "h")
    np.testing.assert_allclose(gp.predict(later), process().fit(DAYS, Y).predict(later), rtol=1e-9)


def test_periods_begin_when_they_begin():
    periods = pd.period_range("2024-03-01", periods=20, freq="D")
    np.testing.assert_array_equal(process().fit(periods, Y).predict(periods), process().fit(DAYS, Y).predict(DAYS))


def test_a_table_of_dates_and_numbers(tmp_path):
    place = np.linspace(-1.0, 1.0, 20) ** 3
    table = pd.DataFrame({"when": pd.DatetimeIndex(DAYS), "where": place})
    kernel = Matern32(1.3, 4.0).on(0) * Matern32(1.0, 0.7).on(1)
    gp = GaussianProcess(kernel, gf.likelihoods.Gaussian(0.3)).fit(table, Y)
    numbers = np.column_stack([DAYS.astype(float), place])
    twin = GaussianProcess(kernel, gf.likelihoods.Gaussian(0.3)).fit(numbers, Y)
    want = twin.predict(numbers)
    np.testing.assert_allclose(gp.predict(table), want, rtol=1e-12)
    gf.save(gp, tmp_path / "model")
    loaded = gf.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(table), gp.predict(table))
    with pytest.raises(ValueError, match=r"dates in columns \[1\], and the model was fitted on dates in columns \[0\]"):
        loaded.predict(table[["where", "when"]])
    table = table.astype(object)
    table.loc[3, "when"] = pd.NaT
    with pytest.raises(ValueError, match=r"X\[3\] is NaT"):
        gp.predict(table)
