"""A noise level that is learned with the network: a parameter of the tree rather than of the likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax.numpy as jnp

from gaussfold.checks import positive
from gaussfold.deep.types import Tree


@dataclass(frozen=True)
class LearnedGaussian:
    """Normal noise whose standard deviation is learned with the network, and is as uncertain as the rest.

    Its logarithm is a leaf of the tree, which :func:`with_noise` adds: {"network": params, "log_std": log std}. With a
    known standard deviation it is :class:`gaussfold.likelihoods.Gaussian`.
    """

    def config(self) -> dict[str, object]:
        """Name, for model files."""
        return {"name": "LearnedGaussian"}


def with_noise(params: Tree, std: float = 1.0) -> dict[str, Tree]:
    """Put a network's parameters beside the logarithm of a noise level, for :class:`LearnedGaussian`."""
    return {"network": params, "log_std": jnp.asarray(math.log(positive("std", std)))}


def is_with_noise(params: Tree) -> bool:
    """Whether this is what :func:`with_noise` makes."""
    return isinstance(params, dict) and params.keys() == {"network", "log_std"}


def parted(params: Tree) -> tuple[Tree, Tree]:
    """The network's parameters and the logarithm of its noise level."""
    if not is_with_noise(params):
        msg = "params: a learned noise level is a part of the tree; use gaussfold.deep.with_noise(params)"
        raise ValueError(msg)
    return params["network"], params["log_std"]
