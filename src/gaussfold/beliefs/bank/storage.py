"""A bank as named arrays and back, bit for bit; what its members must have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gaussfold import schema
from gaussfold.beliefs.bank.weights import SharedWeights
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.beliefs.restoring import restore_single
from gaussfold.dynamics import Dynamics, Forgetting, RandomWalk
from gaussfold.protocols import Belief

KINDS = (DenseGaussian, LowRankGaussian, DiagonalGaussian)
STILL, FORGETS, WALKS = range(3)
PARTS = (
    schema.Part("kinds", ("K",), "whole", low=STILL, high=WALKS),
    schema.Part("rates", ("K",), "double", low=0.0),
    schema.Part("per_row", (1,), "whole", low=0, high=1),
    schema.Part("scale", ("d",), "double", positive=True, optional=True),
)


class Contents(NamedTuple):
    """What a bank holds."""

    members: list[Belief]
    dynamics: list[Dynamics | None]
    weights: SharedWeights
    per_row: bool


def check_members(members: Sequence[Belief], dynamics: Sequence[Dynamics | None]) -> None:
    """Refuse what cannot stand side by side."""
    if not members or len(members) != len(dynamics):
        msg = f"members, dynamics: {len(members)} and {len(dynamics)}; as many of each, at least one, are needed"
        raise ValueError(msg)
    first = members[0]
    if not isinstance(first, KINDS) or any(type(each) is not type(first) or each.dim != first.dim for each in members):
        msg = "members: dense, low-rank or diagonal Gaussians, all of one kind and dimension, are needed"
        raise ValueError(msg)
    priors = [each.prior for each in dynamics if isinstance(each, Forgetting)]
    if any(prior is not priors[0] for prior in priors):
        msg = "dynamics: members forget towards different priors; give all of them the same object"
        raise ValueError(msg)
    units = [each.scale for each in dynamics if isinstance(each, RandomWalk)]
    if any(not _same(unit, units[0]) for unit in units):
        msg = "dynamics: members walk in different scales; give all of them the same one"
        raise ValueError(msg)


def _same(one: object, other: object) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))  # type: ignore[arg-type]  # arrays


def to_arrays(bank: Contents) -> dict[str, np.ndarray]:
    """Members under their number, the prior they return to, the weights, and how each moves."""
    arrays = bank.weights.arrays()
    arrays |= {f"{i}.{name}": array for i, each in enumerate(bank.members) for name, array in each.state().items()}
    kinds, rates = np.zeros(len(bank.members), np.int64), np.zeros(len(bank.members))
    for i, moves in enumerate(bank.dynamics):
        if isinstance(moves, Forgetting):
            kinds[i], rates[i] = FORGETS, moves.factor
            arrays |= {f"prior.{name}": array for name, array in moves.prior.state().items()}
        elif isinstance(moves, RandomWalk):
            kinds[i], rates[i] = WALKS, moves.std
            if moves.scale is not None:
                arrays["scale"] = moves.scale.copy()
    return arrays | {"kinds": kinds, "rates": rates, "per_row": np.array([int(bank.per_row)])}


def from_arrays(arrays: dict[str, np.ndarray]) -> Contents:
    """Undo :func:`to_arrays`."""
    weights = SharedWeights.from_arrays(arrays)
    schema.check(arrays, PARTS, {"K": weights.prior.size})
    members: list[Belief] = [restore_single(schema.part_of(arrays, f"{i}.")) for i in range(weights.prior.size)]
    prior: Any = None
    if (arrays["kinds"] == FORGETS).any():
        prior = restore_single(schema.part_of(arrays, "prior."))
        schema.equal("prior", (type(prior), prior.dim), (type(members[0]), members[0].dim), "as of the members")
    if "scale" in arrays:
        schema.equal("scale", arrays["scale"].size, members[0].dim, "one for each parameter")
    scale = arrays["scale"].copy() if "scale" in arrays else None

    moves: tuple[Callable[[float], Dynamics | None], ...] = (  # by kind
        lambda _: None,
        lambda factor: Forgetting(factor, prior),
        lambda std: RandomWalk(std, scale),
    )
    dynamics = [
        moves[kind](rate) for kind, rate in zip(arrays["kinds"].tolist(), arrays["rates"].tolist(), strict=True)
    ]
    check_members(members, dynamics)
    return Contents(members, dynamics, weights, bool(arrays["per_row"][0]))
