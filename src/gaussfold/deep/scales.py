"""Scales that follow from the tree: how large a leaf's numbers are before anything is known of the data.

A layer whose f inputs are of size one gives outputs of size one if its weights have variance 1/f. Priors, first
standard deviations and learning rates are taken from there, so that a wide network needs no other options than a
narrow one. The last axis of a leaf counts its outputs, as in JAX, Flax and Haiku; a vector or a number (a bias, the
logarithm of a noise level, the weights of a linear model) has one input.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.deep.trees import Layout, Leaf
from gaussfold.types import Array

_FIRST = 0.1
"""Of the prior's standard deviation: where a variational posterior starts, and the largest step of its mean."""
_LARGEST_RATE = 0.01
"""Of Adam; what small networks are trained with."""
_COLDEST = 0.03
"""Temperature of classifiers."""
COUNT, SHARE = 10.0, 1.0
"""A scale that is learned is held where it starts as if by so many parameters, and by as many as the leaf has: a leaf
of one or two cannot run away, and a layer that has learned nothing yet is not shut by a prior that saw it small."""
PACE = 0.1
"""Of the learned scales, each time they move."""
EVERY = 8
"""Steps after which they move: a pass over the factors each time."""


def fan_in(leaf: Leaf) -> int:
    """Inputs of each of a leaf's outputs."""
    return leaf.size // max(1, leaf.shape[-1]) if len(leaf.shape) > 1 else 1


def by_fan_in(layout: Layout) -> Array:
    """The prior's precisions, (D,): as many as a parameter's output has inputs."""
    return np.concatenate([np.full(leaf.size, max(1.0, float(fan_in(leaf)))) for leaf in layout.leaves])


def first_std(layout: Layout) -> Array:
    """Standard deviations to start from, (D,): a tenth of the prior's, so that the first draws are still networks.

    A bias is as uncertain as the typical weight: its own prior is wide.
    """
    inputs = by_fan_in(layout)
    return np.asarray(_FIRST / np.sqrt(np.where(inputs > 1.0, inputs, inputs.mean())))


def usual_rate(layout: Layout) -> float:
    """Learning rate of Adam, whose steps are as long as the rate: a tenth of a typical weight, 0.01 at most."""
    return min(_LARGEST_RATE, _FIRST / math.sqrt(float(by_fan_in(layout).mean())))


def usual_temperature(classes: bool, rows: int, dim: int) -> float:
    """1, or where classes are learned with more parameters than half the rows, rows/(2D), 0.03 at least.

    Labels of classes are mostly certain: whoever collected them left out what was unclear, so that the likelihood of
    one row says less than its label does (Aitchison, ICLR 2021), and a diagonal plus a few factors cannot make up for
    it. A noise level that is learned says how certain numbers are; there the posterior is the exact rule's.
    """
    return min(1.0, max(_COLDEST, rows / (2.0 * dim))) if classes else 1.0


def spread_out(scales: jax.Array, layout: Layout) -> jax.Array:
    """A number per leaf as a vector (D,)."""
    return jnp.concatenate([jnp.full(leaf.size, scales[i], scales.dtype) for i, leaf in enumerate(layout.leaves)])


def by_evidence(scales: jax.Array, moments: jax.Array, layout: Layout) -> jax.Array:
    """A step towards the scales of the prior's precisions that maximise the bound, a number per leaf.

    With E[(θ - prior mean)²] times the precision at scale one in ``moments`` (D,), the bound is largest where
    scale = count/Σ moments, empirical Bayes; :data:`COUNT` + :data:`SHARE`·count more parameters agree with scale
    one. The logarithm moves by a share of the distance, since the belief has to follow.
    """
    sums = jnp.stack([moments[part].sum() for part in layout.slices().values()])
    counts = jnp.asarray([leaf.size for leaf in layout.leaves], moments.dtype)
    held = COUNT + SHARE * counts
    best = (counts + held) / (sums + held)
    return scales * (best / scales) ** PACE
