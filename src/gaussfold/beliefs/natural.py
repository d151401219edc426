"""Beliefs learned in parallel, put together: natural parameters of independent data add."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from gaussfold.checks import same_dim
from gaussfold.types import Array


class Natural(Protocol):
    """A Gaussian that tells its natural parameters."""

    def natural(self) -> tuple[Array, Array]:
        """Precision Λ and Λ·mean: the parameters that add when beliefs are multiplied."""
        ...


def combined(prior: Natural, shards: Iterable[Natural]) -> tuple[Array, Array]:
    """Natural parameters of prior × Π (shard / prior): what one pass over all shards' data would know."""
    base, base_mean = prior.natural()
    precision, precision_mean = base.copy(), base_mean.copy()
    for shard in shards:
        part, part_mean = shard.natural()
        same_dim("shards", part_mean.size, base_mean.size)
        precision += part - base
        precision_mean += part_mean - base_mean
    return precision, precision_mean
