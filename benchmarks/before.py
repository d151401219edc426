"""What a commit costs: this tree and an earlier commit in turns, in one run, as ratios of the best of several.

``GAUSSFOLD_BENCH_BEFORE=85a0a3c python -m benchmarks before``: that commit is unpacked into a folder of its own,
compiles its own loops, and both run the same lines. Loops that only one of the two has are not asked for here.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from benchmarks.clicks import write_few
from benchmarks.report import Report
from benchmarks.sparse import measure

BEFORE = "85a0a3c"
"""The house alone, before it was made dependable (issue 13)."""

FOLDS = """
import json, sys, time
import numpy as np
from scipy.sparse import csr_array
import gaussfold as gf

rng, likelihood, out = np.random.default_rng(0), gf.likelihoods.Bernoulli(), {}


def best(name, rows, repeats, call):
    call()
    spent = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        spent.append(time.perf_counter() - began)
    out[name] = min(spent) / rows


def by_row(make, X, y):
    belief = make()
    for i in range(y.size):
        gf.fold(belief, likelihood, X[i : i + 1], y[i : i + 1])


for d, n in ((10, 4000), (100, 4000), (1000, 2048)):
    X, y = rng.standard_normal((n, d)) / d**0.5, (rng.random(n) < 0.4).astype(float)
    make = lambda: gf.DenseGaussian.isotropic(d)
    best(f"dense fold, d = {d}, one call", n, 7, lambda: gf.fold(make(), likelihood, X, y))
    few = 300 if d < 1000 else 20
    best(f"dense fold, d = {d}, row by row", few, 15, lambda: by_row(make, X[:few], y[:few]))

n, active, dim = 20_000, 20, 200
columns = np.sort(rng.integers(0, dim // active, (n, active)) + np.arange(active) * (dim // active), axis=1)
X = csr_array((np.ones(n * active), columns.ravel(), np.arange(0, n * active + 1, active)), shape=(n, dim))
y = (rng.random(n) < 0.4).astype(float)
one = lambda: gf.DiagonalGaussian.isotropic(dim)
best("sparse fold, one prior", n, 7, lambda: gf.fold(one(), likelihood, X, y, rule="newton"))
eight = lambda: gf.beliefs.DiagonalMixture.isotropic(dim)
best("sparse fold, eight priors", n, 7, lambda: gf.fold(eight(), likelihood, X, y, rule="newton"))
rows = [X[i : i + 1] for i in range(300)]
def sparse_by_row():
    belief = one()
    for i, row in enumerate(rows):
        gf.fold(belief, likelihood, row, y[i : i + 1], rule="newton")
best("sparse fold, row by row", 300, 15, sparse_by_row)
print(json.dumps(out))
"""


def run(quick: bool = False) -> Report:
    """Rounds in turns; the best of each."""
    commit = os.environ.get("GAUSSFOLD_BENCH_BEFORE", BEFORE)
    report = Report(f"This tree beside {commit}, in turns", ("what", "before", "now", "now / before"))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        packed = subprocess.run(["git", "archive", commit, "src"], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            tar.extractall(folder, filter="data")
        trees = {"before": folder / "src", "now": Path("src").resolve()}
        text, small = folder / "few.vw", folder / "small.vw"
        write_few(text, 20_000 if quick else 1_000_000)
        small.write_text("".join(text.open().readlines()[:500]))
        best: dict[str, dict[str, float]] = {}
        for turn in range(2 if quick else 6):  # the first compiles
            for which, tree in trees.items():
                print(f"turn {turn}: {which} ...", file=sys.stderr)
                for name, seconds in _turn(tree, text, small, folder / "model.gf").items():
                    times = best.setdefault(name, {})
                    if turn:
                        times[which] = min(times.get(which, float("inf")), seconds)
    for name, times in best.items():
        report.rows.append([name, _unit(times["before"]), _unit(times["now"]), times["now"] / times["before"]])
    return report


def _turn(tree: Path, text: Path, small: Path, model: Path) -> dict[str, float]:
    """Seconds of everything, with the package as it is in ``tree``."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(tree)
    train = [sys.executable, "-m", "gaussfold.cli", "train", "--quiet", "--prior-std", "1", "-f", str(model)]
    try:
        times = {
            "import gaussfold": _best([sys.executable, "-c", "import gaussfold"]),
            "gaussfold train, 500 rows (start-up)": _best([*train, str(small)]),
            "gaussfold train, one prior": _best([*train, str(text)]),
        }
        return times | json.loads(measure([sys.executable, "-c", FOLDS])[3].splitlines()[-1])
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def _best(command: list[str]) -> float:
    """Seconds of the clock."""
    return min(measure(command)[0] for _ in range(4))


def _unit(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds > 0.01 else f"{1e6 * seconds:.2f} µs"
