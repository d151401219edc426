"""One step of VIFA at D parameters, in a process of its own: ``python -m benchmarks.deep_scale D K OPTIMISER``.

The network is as cheap as one can be, so that what is measured is the posterior: draw, gradient, entropy, optimiser.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import jax.numpy as jnp
import numpy as np

from gaussfold import deep


def quadratic(params: Any, batch: Any) -> Any:
    """Logarithm of a normal density up to a constant, a sum over all parameters."""
    return -0.5 * ((params[None, :] - batch[:, None]) ** 2).sum(axis=1)


def main(dim: int, rank: int, optimizer: str) -> dict[str, float]:
    """Seconds per step after the first chunk, and the process's largest memory."""
    method = deep.VIFA(
        quadratic, jnp.zeros(dim), rank=rank, n_samples=1, batch_size=1, optimizer=optimizer, learning_rate=1e-4
    )
    data = np.ones(1, np.float32)
    steps = int(np.clip(1.5e8 / (dim * max(rank, 1)), 1, 1024))
    method.fit(data, steps=3 * steps)  # compiles
    best = [np.inf, np.inf]
    for _ in range(2 if dim >= 10**7 else 4):
        for place, count in enumerate((steps, 3 * steps)):
            started = time.perf_counter()
            method.fit(data, steps=count)
            best[place] = min(best[place], time.perf_counter() - started)
    seconds = (best[1] - best[0]) / (2 * steps)  # without the start and the making of the posterior
    return {"seconds": seconds, "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
