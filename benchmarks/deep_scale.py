"""A step of VIFA over D and K, in a process of its own: ``python -m benchmarks.deep_scale SECONDS D,K D,K ...``.

The network is as cheap as one can be, so that what is measured is the posterior: draw, gradient, entropy, optimiser.
The cases are visited in turns and the shortest visit counts, so that a busy moment of the machine hits none of them
alone. Prints one line of JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import deep
from gaussfold.deep import training


def quadratic(params: Any, batch: Any) -> Any:
    """Logarithm of a normal density up to a constant, a sum over all parameters."""
    return -0.5 * ((params[None, :] - batch[:, None]) ** 2).sum(axis=1)


class Case:
    """A training of D parameters and K factors, one network a step, and its shortest visit."""

    def __init__(self, dim: int, rank: int) -> None:
        factors = np.random.default_rng(0).standard_normal((dim, rank), dtype=np.float32)
        factors *= np.float32(0.1 / np.sqrt(dim))
        method = deep.VIFA(
            quadratic, jnp.zeros(dim), rank=rank, n_samples=1, batch_size=1, learning_rate=1e-4,
            prior_precision=1.0, init_std=0.1, average=0.0, init_factors=factors,
        )  # fmt: skip
        self.program, self.given = method.program(), training.Given(method.hyper(1, 1), jnp.ones(1), 10)
        self.state = training.start(method.initial())
        self.steps = int(np.clip(2e7 / (dim * (rank + 2)), 1, 512))
        self.best = np.inf
        self.visit()  # compiles
        self.best = np.inf

    def visit(self) -> None:
        """Take steps, in the state's own memory."""
        rows = np.zeros((self.steps, 1, 1), np.int32)
        started = time.perf_counter()
        self.state, _ = training.run_chunk(self.program, False, self.state, self.given, rows, self.steps)
        jax.block_until_ready(self.state)
        self.best = min(self.best, (time.perf_counter() - started) / self.steps)


def main(cases: list[tuple[int, int]], seconds: float = 40.0) -> dict[str, Any]:
    """Seconds per step of each case, and the process's largest memory."""
    found = [Case(*case) for case in cases]
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for case in found:
            case.visit()
    if any(int(case.state["skipped"]) for case in found):
        msg = "steps were skipped, so their time means nothing"
        raise RuntimeError(msg)
    table = [{"D": dim, "K": rank, "seconds": case.best} for (dim, rank), case in zip(cases, found, strict=True)]
    return {"steps": table, "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


if __name__ == "__main__":
    wanted = [tuple(map(int, case.split(","))) for case in sys.argv[2:]]
    print(json.dumps(main(wanted, float(sys.argv[1]))))  # type: ignore[arg-type]
