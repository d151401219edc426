"""How long rounds take on a cluster that is not here: 64 to 1024 workers, 10⁹ to 10¹² rows, by what was measured here.

Measured in this run, for the default of the command line (a stack) on lines of Vowpal Wabbit with one of each of 22
categories, popular by Zipf's law: processor time to read and learn a row in a shard, to add up a cell, to apply one, to
make a model of bytes; bytes of a cell in a base and in a delta; and how many cells n rows touch, C n^β fitted to the
rows at hand, at most all. The rest is arithmetic. A round takes

    base to every worker, along a tree + rows of the largest shard + adding up in groups, then by the driver + applying,

with 10 Gbit/s at every machine, one core a worker. A round has 64 shards at most, so more workers help only where
that is raised: both are drawn. More than 64 shards were not tried on data: the loss there is not known.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.clicks import write_zipf
from benchmarks.report import Report
from gaussfold.cli.model import StreamModel
from gaussfold.cli.setting import AUTO, Setting
from gaussfold.data.reading import Reading, Roles
from gaussfold.data.units import units_of
from gaussfold.distributed import Scheme, rounds_of
from gaussfold.distributed.work import Base, Learned, Task, learn_shard, open_base

BANDWIDTH = 10e9 / 8
"""Bytes a second at every machine."""
SLOTS = 1 << 24
WORKERS, ROWS = (64, 128, 256, 512, 1024), (1e9, 1e10, 1e11, 1e12)
PICTURE = Path("docs/reference/scale-simulated.png")


class Costs(NamedTuple):
    """Of one row, one cell and one byte: seconds, bytes, and how many cells n rows touch."""

    row: float
    merge: float
    apply: float
    unpack: float
    """Seconds a byte, to make a model of it."""
    base_slot: float
    """Of every slot, met or not: when the lane that forgets saw it."""
    base_cell: float
    delta_cell: float
    touch: tuple[float, float]
    """C and β."""

    def cells(self, rows: float) -> float:
        """How many so many rows touch."""
        return min(float(SLOTS), self.touch[0] * rows ** self.touch[1])


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Processor time, and what came."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def measured(rows: int) -> Costs:
    """Learn so many rows in rounds, here."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.vw"
        write_zipf(path, rows)
        model = StreamModel(Setting(prior_std=AUTO), Reading(bits=SLOTS.bit_length() - 1))
        scheme = Scheme(head=max(1024, rows // 32))
        planned = units_of(str(path), model.reading, Roles(), scheme.head // 2)
        model.reading = planned.reading
        seconds, n, merging, merged, touched = 0.0, 0, 0.0, 0, []
        for shards in rounds_of(planned.units, scheme):
            base, known = Base(model), model.belief.touched().size
            unpack, opened = timed(lambda base=base: open_base(lambda: base.raw, base.key))
            total = None
            for shard in shards:
                learned: Learned = learn_shard(opened, Task(shard, model.reading, scheme.least, 0))
                assert learned.gained is not None
                delta = learned.gained.delta
                model.take(learned.gained)
                touched.append((learned.rows, delta.lanes.cells.slots.size))
                if shard.index:  # the first makes what all need
                    seconds, n = seconds + learned.seconds, n + learned.rows
                if total is not None:
                    took, together = timed(lambda a=total, b=delta: a.merge(b))
                    merging += took
                    merged += total.lanes.cells.slots.size + delta.lanes.cells.slots.size
                    delta = together
                total = delta
            applying, _ = timed(lambda total=total: model.belief.apply(total))
        cells = max(1, total.lanes.cells.slots.size)
        few, many = np.array(touched, float).T
        beta, log_c = np.polyfit(np.log(few), np.log(many), 1) if np.ptp(np.log(few)) > 0.1 else (0.8, 0.0)
        return Costs(
            seconds / max(1, n), merging / max(1, merged), applying / cells, unpack / len(base.raw),
            8.0, (len(base.raw) - 8.0 * SLOTS) / max(1, known), total.nbytes / cells,
            (float(np.exp(log_c)), min(1.0, float(beta))),
        )  # fmt: skip


class Round(NamedTuple):
    """A round in seconds, and what it moved."""

    seconds: float
    bytes: float
    work: float
    """Seconds that the busiest worker learns."""


def simulated(costs: Costs, rows: float, workers: int, scheme: Scheme) -> Iterator[Round]:
    """Every round of a run."""
    done = 0.0
    while done < rows:
        n = min(rows - done, scheme.growth * done if done else float(scheme.head))
        shards = max(1, min(scheme.most, int(n // scheme.head))) if done else 1
        base = costs.base_slot * SLOTS + costs.base_cell * costs.cells(done)
        each = costs.cells(n / shards)
        used = min(workers, shards)
        work = math.ceil(shards / workers) * n / shards * costs.row
        spread = base / BANDWIDTH * math.ceil(math.log2(used + 1)) + base * costs.unpack
        cell = costs.delta_cell / BANDWIDTH + 2.0 * costs.merge
        size = max(1, math.isqrt(shards))  # see gaussfold.distributed.work.groups
        sums = math.ceil(shards / size) * costs.cells(size * n / shards)
        back = (size * each * cell if size > 1 else 0.0) + sums * cell
        moved = used * base + (shards * each * (size > 1) + sums) * costs.delta_cell
        yield Round(spread + work + back + costs.cells(n) * costs.apply, moved, work)
        done += n


def run(quick: bool = False) -> Report:
    """Measure and simulate."""
    costs = measured(20_000 if quick else 600_000)
    report = Report(
        "Simulated: rounds on 64 to 1024 workers, by costs measured here",
        ["rows", "workers", "shards", "rounds", "hours", "busy, %", "GB, last round", "seconds, last round"],
    )
    report.numbers["costs"] = costs._asdict()
    report.notes.append(
        f"measured: {1e6 * costs.row:.2f} µs a row, {1e9 * costs.merge:.0f} ns to add up a cell, "
        f"{1e9 * costs.apply:.0f} ns to apply one, 8 bytes a slot and {costs.base_cell:.0f} a cell in "
        f"the base, {costs.delta_cell:.0f} a cell in a delta, {costs.touch[0]:.3g} n^{costs.touch[1]:.2f} "
        f"cells of n rows, {SLOTS:,} at most"
    )
    lines: dict[str, list[tuple[float, list[float]]]] = {"64 shards": [], "a shard for each worker": []}
    for rows in ROWS:
        for name, points in lines.items():
            hours = []
            for workers in WORKERS:
                scheme = Scheme(most=64 if name == "64 shards" else workers)
                rounds = list(simulated(costs, rows, workers, scheme))
                took = sum(each.seconds for each in rounds)
                hours.append(took / 3600.0)
                last = rounds[-1]
                busy = 100.0 * rows * costs.row / (took * workers)
                report.rows.append(
                    [f"{rows:.0e}", workers, scheme.most, len(rounds), took / 3600.0, busy, last.bytes / 1e9,
                     last.seconds]
                )  # fmt: skip
            points.append((rows, hours))
    if not quick:
        draw(lines)
        report.notes.append(f"drawn: {PICTURE}")
    return report


def draw(lines: dict[str, list[tuple[float, list[float]]]]) -> None:
    """Hours by workers."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for k, rows in enumerate(ROWS):
        for (name, points), dashes in zip(lines.items(), ("--", "-"), strict=True):
            label = f"10$^{{{round(math.log10(rows))}}}$ rows" if dashes == "-" else ("64 shards" if k == 0 else None)
            del name
            axes.plot(WORKERS, points[k][1], ls=dashes, color=f"C{k}", marker="o", ms=4, label=label)
    axes.set(xscale="log", yscale="log", xlabel="workers (one core each)", ylabel="hours", xticks=WORKERS)
    axes.set_xticklabels([str(each) for each in WORKERS])
    axes.minorticks_off()
    figure.legend(loc="outside right center")
    axes.set_title("Simulated by costs measured on one machine; full lines: a shard for each worker")
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=120)
