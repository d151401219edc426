"""Gaussian-process classification by variational inference: Markov, dense and sparse, beside bayesnewton and GPyTorch.

Every library runs in a process of its own on one BLAS thread: ours (`gp_ours`) and the peers (`peers_gp`) with the
Python of their environment, named by an environment variable of ``PEERS``. An *iteration* updates every site and the
posterior. A *step* of the hyperparameters is the posterior at the new ones, an iteration, the energy and its gradient.
Held-out rows are drawn at random from the same process; all libraries see the same file.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from benchmarks.report import Report

HERE = Path(__file__).resolve().parent
PEERS = {
    "bayesnewton": ("GAUSSFOLD_BAYESNEWTON_PYTHON", "/tmp/venv_bn/bin/python"),
    "gpytorch": ("GAUSSFOLD_GPYTORCH_PYTHON", "/tmp/venv_torch/bin/python"),
}
INSTALL = {
    "bayesnewton": "Python 3.11, pip install jax==0.4.13 jaxlib==0.4.13 objax==1.7.0 'numpy<1.27' 'scipy<1.11' "
    "tensorflow-probability==0.20.1 numba; pip install --no-deps bayesnewton==1.3.4",
    "gpytorch": "pip install torch==2.13.0 gpytorch==1.15.2",
}
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
    "GAUSSFOLD_QUIET": "1",
}
LINE = {"kernel": "Matern32", "variance": 2.0, "lengthscale": 1.0, "link": "logit", "damping": 1.0, "rate": 0.05}
PLANE = {"kernel": "Matern52", "variance": 1.0, "lengthscale": 1.0, "link": "probit", "damping": 1.0, "rate": 0.05}
COLUMNS = (
    *("structure", "N", "library", "iteration, ms", "step, ms", "step, full gradient, ms", "first use, s"),
    *("NLPD", "energy"),
    *("learned: s", "learned: NLPD", "learned: energy", "iteration: times ours", "step: times ours"),
)


def smooth(X: np.ndarray, lengthscale: float, variance: float, freedom: float, rng: np.random.Generator) -> np.ndarray:
    """A draw from a Matérn process of smoothness freedom/2, as 200 random cosines (Student-t frequencies)."""
    count = 200
    frequencies = rng.standard_normal((count, X.shape[1])) / lengthscale
    frequencies /= np.sqrt(rng.chisquare(freedom, count) / freedom)[:, None]
    phases = rng.uniform(0.0, 2.0 * math.pi, count)
    parts = (np.cos(block @ frequencies.T + phases).sum(axis=1) for block in np.array_split(X, len(X) // 20_000 + 1))
    return math.sqrt(2.0 * variance / count) * np.concatenate(list(parts))


def line(rows: int) -> dict[str, np.ndarray]:
    """Binary labels at irregular times, 55 to a length scale; a tenth as many held out in between."""
    rng = np.random.default_rng(rows)
    total = rows + rows // 10
    X = np.sort(rng.uniform(0.0, total / 55.0, total))[:, None]
    Y = (rng.random(total) < expit(smooth(X, 1.0, 2.0, 3.0, rng))).astype(float)[:, None]
    test = np.zeros(total, bool)
    test[rng.choice(total, rows // 10, replace=False)] = True
    return {"X": X[~test], "Y": Y[~test], "X_test": X[test], "Y_test": Y[test]}


def plane(rows: int) -> dict[str, np.ndarray]:
    """Binary labels in the plane, 2000 more held out, and a grid of 100 inducing inputs."""
    rng = np.random.default_rng(rows)
    X = rng.uniform(-3.0, 3.0, (rows + 2000, 2))
    Y = (rng.random(len(X)) < ndtr(smooth(X, 0.7, 4.0, 5.0, rng))).astype(float)[:, None]
    ticks = np.linspace(-2.7, 2.7, 10)
    Z = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    return {"X": X[:rows], "Y": Y[:rows], "X_test": X[rows:], "Y_test": Y[rows:], "Z": Z}


def _python(library: str) -> str | None:
    variable, default = PEERS[library]
    path = os.environ.get(variable, default)
    return path if Path(path).exists() else None


def measured(
    library: str, structure: str, path: Path, options: dict[str, Any], extra: dict[str, str] | None = None
) -> dict[str, Any]:
    """Run one library in its own process; what it found, or ``{"absent": why}``."""
    python: str | None = sys.executable
    command = ["-m", "benchmarks.gp_ours"]
    if library != "ours":
        python, command = _python(library), [str(HERE / "peers_gp.py"), library]
    if python is None:
        return {"absent": f"set {PEERS[library][0]} to the Python of an environment made by: {INSTALL[library]}"}
    environment = os.environ | ONE_THREAD | (extra or {})
    print(f"measuring {structure}, N = {options['rows']}, {library} ...", file=sys.stderr, flush=True)
    arguments = [python, *command, structure, str(path), json.dumps(options)]
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment, cwd=HERE.parent, check=False)
    if done.returncode:
        return {"absent": (done.stderr.strip().splitlines() or ["no message"])[-1][:300]}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _plans(quick: bool) -> list[tuple[str, int, list[str], dict[str, Any]]]:
    """(structure, rows, libraries, options): fewer repeats where one takes seconds."""
    common = {"repeats": 7, "iterations": 10, "steps": 0, "learn_inducing": False}
    both, three = ["ours", "bayesnewton"], ["ours", "bayesnewton", "gpytorch"]
    if quick:
        small = common | {"repeats": 2}
        return [
            ("markov", 1000, both, small | LINE),
            ("markov", 10_000, both, small | LINE),
            ("dense", 300, both, small | PLANE),
            ("sparse", 1000, three, small | PLANE | {"steps": 5}),
        ]
    plans = [
        ("markov", rows, both, common | LINE | {"repeats": repeats})
        for rows, repeats in ((10**3, 20), (10**4, 20), (10**5, 7), (10**6, 4))
    ]
    plans += [("dense", rows, both, common | PLANE | {"repeats": 2}) for rows in (1000, 2000)]
    plans.append(("dense", 10_000, ["ours"], common | PLANE | {"repeats": 1, "only_iteration": True}))
    plans += [("sparse", rows, three, common | PLANE | {"repeats": 5, "steps": 30}) for rows in (1000, 10_000)]
    return plans


def _row(structure: str, rows: int, library: str, found: dict[str, Any], ours: dict[str, Any]) -> list[Any]:
    def ratio(key: str) -> Any:
        return found[key] / ours[key] if library != "ours" and key in found and key in ours else "-"

    def millis(key: str) -> Any:
        return 1e3 * found[key] if key in found else "-"

    learned = found.get("learned", {})
    first = found["first_use"] if library == "ours" else found["compile"]
    scores = [found["nlpd"], found["energy"], *(learned.get(key, "-") for key in ("seconds", "nlpd", "energy"))]
    times = [millis("iteration"), millis("step"), millis("step_full"), first]
    return [structure, rows, library, *times, *scores, ratio("iteration"), ratio("step")]


def _notes(report: Report, found: dict[tuple[str, int, str], dict[str, Any]]) -> None:
    sizes = sorted(rows for structure, rows, library in found if structure == "markov" and library == "ours")
    low, high = sizes[-1] // 100 if len(sizes) > 2 else sizes[0], sizes[-1]
    exponents = {
        key: math.log(found["markov", high, "ours"][key] / found["markov", low, "ours"][key]) / math.log(high / low)
        for key in ("iteration", "step", "step_full")
    }
    slopes = {
        f"{structure}, N = {rows}": [one[key] / one["energy_seconds"] for key in ("gradient", "gradient_settled")]
        for (structure, rows, library), one in found.items()
        if library == "ours" and "gradient" in one
    }
    report.numbers |= {"exponents": exponents, "gradient_over_energy": slopes}
    report.notes += [
        f"Markov, ours, N = {low} to {high}: time grows as N^{exponents['iteration']:.3f} (iteration), "
        f"N^{exponents['step']:.3f} (step), N^{exponents['step_full']:.3f} (step with the full gradient).",
        "energy gradient over energy at new hyperparameters, with and without the chain through the marginals: "
        + "; ".join(f"{name}: {full:.2f}, {settled:.2f}" for name, (full, settled) in slopes.items()),
        "step: -d log Z at fixed sites is the gradient, in bayesnewton as in ours; full gradient: with the chain.",
        "one inference() of bayesnewton runs filter and smoother twice (before and after the sites); timed as it is. "
        "Its probit is clipped by 1e-3, hence the slightly other energies of the dense and sparse rows.",
        "GPyTorch: one natural-gradient step on all rows (iteration), and Adam for the hyperparameters with it (step); "
        "it keeps q(u), not sites.",
        "learned: 30 L-BFGS iterations (ours, inference converged inside each), 30 Adam steps at 0.05 (bayesnewton), "
        "300 (GPyTorch); inducing inputs fixed for all. Dense N = 10000: the first iteration, ours only (a minute).",
    ]


def run(quick: bool = False) -> Report:
    """Measure all sizes; under eight minutes on an idle machine."""
    report = Report("Gaussian processes: classification by variational inference", COLUMNS)
    found: dict[tuple[str, int, str], dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        for structure, rows, libraries, options in _plans(quick):
            np.savez(path, **(line if structure == "markov" else plane)(rows))
            for library in libraries:
                mine = options | {"rows": rows}
                if library == "gpytorch":
                    mine["steps"] *= 10
                one = measured(library, structure, path, mine)
                if "absent" in one:
                    report.notes.append(f"{structure}, N = {rows}: no {library}: {one['absent']}")
                    continue
                found[structure, rows, library] = one
                ours = found.get((structure, rows, "ours"), {})
                report.rows.append(_row(structure, rows, library, one, ours))
        np.savez(path, **line(1000))
        cold = LINE | {"rows": 1000, "only_first_use": True}
        empty = measured("ours", "markov", path, cold, {"NUMBA_CACHE_DIR": str(Path(folder) / "numba")})
    _notes(report, found)
    if "first_use" in empty:
        report.numbers["first_use_empty_cache"] = empty["first_use"]
        report.notes.append(
            f"first use with an empty Numba cache (Markov; fit, energy, gradients, prediction; imports included): "
            f"{empty['first_use']:.1f} s. Under 'first use' ours has a full cache, the peers' is their compilation."
        )
    report.numbers["found"] = {"/".join(map(str, key)): one for key, one in found.items()}
    return report
