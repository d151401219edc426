"""One pass over a network with no option given, beside one pass of Adam at fifteen settings: nine tasks, ten splits.

Adam has three batch sizes and five rates; the noise of regressions is learned with the weights, or is what the second
half of the pass left unexplained, whichever the test rows like better. *Its best setting* is the one that is best on
the mean of the splits; *the best of each split* is chosen by each split's own test rows, which no user could do.
``GAUSSFOLD_BENCH_SPLITS`` (how many) and ``GAUSSFOLD_BENCH_TASKS`` choose fewer.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.deep_defaults_data import SOURCES, UCI, Task, task
from benchmarks.report import Report
from gaussfold import deep

FIRST, SPLITS = 100, 10
"""Splits that nothing was chosen on."""
BATCHES = (1, 4, 16)
RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)


def _losses(task: Task, params: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Negative log likelihoods of rows, and their squared errors."""
    f = task.apply(params["network"], X)
    if task.classes == 0:
        away = y - f
        log_std = params["log_std"]
        return 0.5 * (away * jnp.exp(-log_std)) ** 2 + log_std + 0.5 * np.log(2.0 * np.pi), away**2
    if task.classes == 2:
        return jnp.logaddexp(0.0, f) - y * f, jnp.zeros(len(y))
    chosen = jnp.take_along_axis(jax.nn.log_softmax(f), y[:, None].astype(int), axis=1)[:, 0]
    return -chosen, jnp.zeros(len(y))


def adam(task: Task, split: int, batch: int) -> np.ndarray:
    """Test NLL after one pass, for each rate."""
    X, y = task.train
    steps = len(y) // batch
    rows = X[: steps * batch].reshape(steps, batch, *X.shape[1:]), y[: steps * batch].reshape(steps, batch)
    start = {"network": task.start(10 * split), "log_std": jnp.zeros(())}

    @partial(jax.vmap, in_axes=0)
    def one(rate: jax.Array) -> jax.Array:
        optimiser = optax.adam(rate)

        def step(state: Any, rows: Any) -> Any:
            params, memory = state

            def loss(params: Any) -> Any:
                values, squares = _losses(task, params, *rows)
                return values.mean(), squares.mean()

            slope, left = jax.grad(loss, has_aux=True)(params)
            change, memory = optimiser.update(slope, memory)
            return (optax.apply_updates(params, change), memory), left

        (params, _), left = jax.lax.scan(step, (start, optimiser.init(start)), rows)
        unexplained = 0.5 * jnp.log(left[steps // 2 :].mean())
        kinds = [params, params | {"log_std": unexplained}] if task.classes == 0 else [params]
        return jnp.stack([_losses(task, kind, *task.test)[0].mean() for kind in kinds])

    found = np.asarray(jax.jit(one)(jnp.asarray(RATES)))
    return np.nan_to_num(found, nan=np.inf).min(axis=1)


def ours(task: Task, split: int) -> float:
    """Test NLL of ``LRVGA`` as it comes."""
    likelihood = "gaussian" if task.classes == 0 else "bernoulli" if task.classes == 2 else "softmax"
    posterior = deep.LRVGA(task.apply, likelihood, task.start(10 * split)).fit(*task.train)
    X, y = task.test
    return float(-posterior.predict(task.apply, X).log_prob(y).mean())


def run(quick: bool = False) -> Report:
    """Every task and split."""
    splits = 1 if quick else int(os.environ.get("GAUSSFOLD_BENCH_SPLITS", SPLITS))
    wanted = os.environ.get("GAUSSFOLD_BENCH_TASKS", "cancer" if quick else " ".join(SOURCES)).split()
    columns = ("task", "one pass", "Adam, its best setting", "which", "wins", "difference", "best of each split")
    report = Report("One pass, test NLL: ours as it comes beside Adam", columns)
    for name in wanted:
        if name in ("boston", "concrete", "energy", "yacht") and not (UCI / "yacht.npz").is_file():
            report.notes.append(f"{name}: ../shared/data is absent")
            continue
        here, beside = np.zeros(splits), np.zeros((splits, len(BATCHES), len(RATES)))
        for number in range(splits):
            now = task(name, FIRST + number)
            here[number] = ours(now, FIRST + number)
            beside[number] = [adam(now, FIRST + number, batch) for batch in BATCHES]
        mean = beside.mean(axis=0)
        b, r = np.unravel_index(np.argmin(mean), mean.shape)
        gap = here - beside[:, b, r]
        error = gap.std(ddof=1) / np.sqrt(splits) if splits > 1 else float("nan")
        report.rows.append([
            name, float(here.mean()), float(mean[b, r]), f"{BATCHES[b]}, {RATES[r]:g}",
            f"{int((gap <= 0.0).sum())} of {splits}", f"{gap.mean():.3f} ± {error:.3f}",
            float(beside.reshape(splits, -1).min(axis=1).mean()),
        ])  # fmt: skip
        print(report.rows[-1], file=sys.stderr, flush=True)
        report.numbers[name] = {"ours": here.tolist(), "adam": beside.tolist()}
    return report
