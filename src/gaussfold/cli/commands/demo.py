"""``gaussfold demo``: a click stream whose truth is known, learned live."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gaussfold.cli.model import StreamModel
from gaussfold.cli.setting import AUTO, Setting
from gaussfold.data.chunks import Chunk
from gaussfold.data.columns import assemble, categories
from gaussfold.data.reading import Column, Reading
from gaussfold.engine.compilation import waiting
from gaussfold.types import Array

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

COLUMNS = {
    "hour": 24,
    "weekday": 7,
    "device": 12,
    "country": 60,
    "site": 3000,
    "advertiser": 800,
    "ad": 20000,
    "user": 50000,
}
_EFFECT, _BIAS, _CHUNK, _BINS = 0.5, -2.0, 5000, 10


class Clicks:
    """Rows of categories, each with a weight of its own; a click has probability σ(bias + Σ weights)."""

    def __init__(self, n: int, seed: int) -> None:
        self._n, self._rng = n, np.random.default_rng(seed)
        self._weights = {name: _EFFECT * self._rng.standard_normal(size) for name, size in COLUMNS.items()}
        # popularity falls off as in the real world: the k-th most frequent site has a share of about 1/k
        self._shares = {name: _zipf(size) for name, size in COLUMNS.items()}
        self._texts = {name: [f"{name}{k}" for k in range(size)] for name, size in COLUMNS.items()}
        self.reading = Reading(bits=18, columns=tuple(Column(name, "category") for name in COLUMNS))

    def __iter__(self) -> Iterator[tuple[Chunk, Array]]:
        for start in range(0, self._n, _CHUNK):
            size = min(_CHUNK, self._n - start)
            latent, features = np.full(size, _BIAS), []
            for name, shares in self._shares.items():
                codes = np.searchsorted(shares, self._rng.random(size))
                latent += self._weights[name][codes]
                present, place = np.unique(codes, return_inverse=True)
                texts = self._texts[name]
                features.append(categories(Column(name, "category"), [texts[k] for k in present], place))
            truth = 1.0 / (1.0 + np.exp(-latent))
            label = (self._rng.random(size) < truth).astype(float)
            rows = assemble(features, size, self.reading)
            lines = np.arange(start + 1, start + size + 1)
            yield Chunk(*rows, label, np.ones(size), self.reading.width, "clicks", lines), truth


def _zipf(size: int) -> Array:
    share = 1.0 / np.arange(1.0, size + 1.0)
    return np.asarray(np.cumsum(share / share.sum()) - 1e-12)


class Tally:
    """Loss, regret against the truth, and calibration so far."""

    def __init__(self) -> None:
        self.rows, self.loss, self.best, self.constant = 0, 0.0, 0.0, 0.0
        self.clicks = 0.0
        self.bins = np.zeros((3, _BINS))  # rows, predicted clicks, clicks
        self.history: list[tuple[int, float]] = []

    def add(self, label: Array, predicted: Array, truth: Array) -> None:
        """Count a chunk, predicted before it was learned."""
        self.rows += len(label)
        self.clicks += label.sum()
        self.loss += _loss(label, predicted)
        self.best += _loss(label, truth)
        place = np.minimum((predicted * _BINS).astype(int), _BINS - 1)
        for row, values in enumerate((np.ones_like(label), predicted, label)):
            self.bins[row] += np.bincount(place, values, _BINS)
        self.history.append((self.rows, self.loss - self.best))

    @property
    def constant_loss(self) -> float:
        """Loss a row of the best constant prediction."""
        p = self.clicks / self.rows
        return -sum(q * math.log(q) for q in (p, 1.0 - p) if q > 0)

    @property
    def calibration_error(self) -> float:
        """Mean distance of predicted and actual rate, over the bins by their rows."""
        return float(np.abs(self.bins[1] - self.bins[2]).sum() / self.rows)


def _loss(label: Array, p: Array) -> float:
    q = np.clip(np.where(label == 1.0, p, 1.0 - p), 1e-300, 1.0)
    return float(-np.log(q).sum())


def demo(n: int, seed: int, as_json: bool, quiet: bool) -> int:
    """Generate, learn and show."""
    from rich.console import Console
    from rich.live import Live

    clicks, tally = Clicks(n, seed), Tally()
    model = StreamModel(Setting(prior_std=AUTO), clicks.reading)
    console = Console(stderr=as_json, quiet=quiet)
    learning, began, shown = 0.0, time.perf_counter(), 0.0
    compiling = waiting.seconds()
    with (
        Live(console=console, refresh_per_second=4, auto_refresh=console.is_terminal) as live,
        waiting.speak_through(live.update) if console.is_terminal else contextlib.nullcontext(),
    ):
        for chunk, truth in clicks:
            start = time.perf_counter() - waiting.seconds()
            trace = model.learn(chunk)
            learning += time.perf_counter() - waiting.seconds() - start  # a rate without compilation
            model.add(chunk, trace, 0, len(chunk))
            tally.add(
                chunk.label,
                np.exp(np.where(chunk.label == 1.0, trace.log_predictive, _log_other(trace.log_predictive))),
                truth,
            )
            if console.is_terminal and time.perf_counter() - shown > 0.25:
                shown = time.perf_counter()
                live.update(_screen(tally, n, learning))
        live.update(_screen(tally, n, learning))
    summary = {
        "examples": tally.rows, "average_loss": tally.loss / tally.rows, "truth_loss": tally.best / tally.rows,
        "constant_loss": tally.constant_loss, "regret": tally.loss - tally.best,
        "calibration_error": tally.calibration_error, "examples_per_second": round(tally.rows / learning),
        "seconds": round(time.perf_counter() - began, 3),
        "compile_seconds": round(waiting.seconds() - compiling, 3),
    }  # fmt: skip
    if as_json:
        print(json.dumps(summary))
    return 0


def _log_other(log_p: Array) -> Array:
    """log(1 - p) of a log probability."""
    return np.asarray(np.log(-np.expm1(np.minimum(log_p, -1e-300))))


def _screen(tally: Tally, n: int, learning: float) -> Group:
    from rich.console import Group
    from rich.table import Table

    head = (
        f"[bold]{tally.rows:,}[/bold] of {n:,} clicks and non-clicks, {sum(COLUMNS.values()):,} possible features, "
        f"predicted one by one before each was learned ({tally.rows / max(learning, 1e-9):,.0f} rows/s)\n"
    )
    losses = Table(title="log loss per row", title_justify="left")
    for name in ("best constant", "gaussfold", "the truth itself", "regret in total", "regret / log t"):
        losses.add_column(name, justify="right")
    regret = tally.loss - tally.best
    losses.add_row(
        f"{tally.constant_loss:.5f}", f"[bold]{tally.loss / tally.rows:.5f}[/bold]", f"{tally.best / tally.rows:.5f}",
        f"{regret:,.0f} nats", f"{regret / math.log(tally.rows):,.1f}",
    )  # fmt: skip
    curve = _regret_curve(tally)
    return Group(head, losses, *([curve] if curve.columns else []), _calibration(tally))


def _regret_curve(tally: Tally) -> Table:
    """Regret per row between round numbers of rows."""
    from rich.table import Table

    curve = Table(title="regret per row", title_justify="left")
    marks = [k for k in (10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000) if k <= tally.rows]
    known = dict(tally.history)
    before = (0, 0.0)
    values = []
    for k in marks:
        if k in known:
            curve.add_column(f"to {k:,}", justify="right")
            values.append(f"{(known[k] - before[1]) / (k - before[0]):.4f}")
            before = (k, known[k])
    curve.add_row(*values)
    return curve


def _calibration(tally: Tally) -> Table:
    """Predicted against actual rates, bin by bin."""
    from rich.table import Table

    table = Table(title=f"calibration (mean error {tally.calibration_error:.4f})", title_justify="left")
    for name in ("predicted", "rows", "mean prediction", "clicked"):
        table.add_column(name, justify="left" if name == "clicked" else "right")
    for k in range(_BINS):
        rows, predicted, clicked = tally.bins[:, k]
        if rows:
            bar = "█" * round(30 * clicked / rows)
            table.add_row(
                f"{k / _BINS:.1f} to {(k + 1) / _BINS:.1f}",
                f"{rows:,.0f}",
                f"{predicted / rows:.3f}",
                f"{clicked / rows:.3f} {bar:<30}",
            )
    return table
