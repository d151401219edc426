"""More than two classes by a softmax: which belief holds the weights, how rows reach it, and what is read off it.

Up to `JOINT_WEIGHTS` weights one Gaussian covers the weights of all classes; beyond, and for low-rank and diagonal
posteriors, every class has a Gaussian of its own (a block-diagonal covariance).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from gaussfold import checks
from gaussfold.beliefs.blocks import BlockGaussian
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.blocks import DiagonalBlocks
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.estimators.priors import AnyBelief, Prior
from gaussfold.estimators.settings import Settings
from gaussfold.folding import FoldResult, fold
from gaussfold.likelihoods import Softmax
from gaussfold.rows import Block, Rows
from gaussfold.schema import equal
from gaussfold.sweeping import sweep
from gaussfold.types import Array, Moments

ClassBelief: TypeAlias = DenseGaussian | BlockGaussian | DiagonalBlocks
"""What holds the weights of all classes."""
JOINT_WEIGHTS = 200
"""Up to so many weights covariances between classes are kept: a row costs classes times the square of this."""
MOST_JOINT = 4000
"""Weights from which on a covariance between all of them is refused: 128 MB, and seconds a row."""
MOST_NUMBERS = 1 << 28
"""Numbers that the covariances of all classes may have: 2 GB."""
ROOM = 1 << 22
"""Numbers of a trace at a time: rows with covariances between classes are folded in pieces of this size."""
WAYS = ("auto", "softmax", "ovr")
COVARIANCES = ("auto", "joint", "block")


def is_softmax(multi_class: str, reasons: list[str]) -> bool:
    """Whether classes are learned by a softmax: as asked, or by "auto" unless some option is one-vs-rest's alone."""
    checks.one_of("multi_class", multi_class, WAYS)
    if multi_class == "softmax" and reasons:
        msg = f"multi_class='softmax' does not go with {', '.join(reasons)}; leave that out, or use multi_class='ovr'"
        raise ValueError(msg)
    return multi_class == "softmax" or (multi_class == "auto" and not reasons)


def start(prior: Prior, classes: int, class_covariance: str) -> ClassBelief:
    """A new belief over the weights of all classes that has seen nothing."""
    checks.one_of("class_covariance", class_covariance, COVARIANCES)
    weights = classes * prior.dim
    if prior.covariance == "diagonal":
        blocks = [prior.diagonal_belief() for _ in range(classes)]
        return DiagonalBlocks.of([block for block in blocks if isinstance(block, DiagonalGaussian)])
    joint = weights <= JOINT_WEIGHTS if class_covariance == "auto" else class_covariance == "joint"
    if prior.covariance == "lowrank":
        return BlockGaussian([prior.belief() for _ in range(classes)])
    _check_size(prior.dim, classes, joint=joint)
    if joint:
        mean, std = prior.vectors()
        return DenseGaussian.independent(np.tile(mean, classes), np.tile(std, classes))
    return BlockGaussian([prior.belief() for _ in range(classes)])


def _check_size(dim: int, classes: int, *, joint: bool) -> None:
    """Refuse covariances that no machine holds, and say what to take instead."""
    weights = classes * dim
    if joint and weights > MOST_JOINT:
        msg = (
            f"class_covariance='joint': {classes} classes of {dim} weights have a covariance of {weights} rows; "
            f"at most {MOST_JOINT} are allowed, so use class_covariance='block', or covariance='diagonal'"
        )
        raise ValueError(msg)
    if not joint and classes * dim**2 > MOST_NUMBERS:
        msg = (
            f"covariance='full': {classes} classes of {dim} weights need {8e-9 * classes * dim**2:.3g} GB "
            "of covariances; use covariance='diagonal', or 'lowrank'"
        )
        raise ValueError(msg)


def check_kind(belief: AnyBelief, prior: Prior, classes: int, class_covariance: str) -> None:
    """Refuse the belief of a model file that is not what these parameters say."""
    needed = start(prior, classes, class_covariance)
    equal("belief", type(belief).__name__, type(needed).__name__, "as covariance and class_covariance say")
    equal("belief", belief.dim, needed.dim, "one parameter for each class and feature")


def dynamics(settings: Settings, classes: int, class_covariance: str) -> Forgetting | RandomWalk | None:
    """What passes over the weights of all classes; forgetting returns to the prior of all of them."""
    one = settings.dynamics
    if isinstance(one, Forgetting):
        return Forgetting(one.factor, start(settings.prior, classes, class_covariance))
    return one if isinstance(one, RandomWalk) else None


def learn(
    belief: ClassBelief,
    design: Rows | Block,
    labels: Array,
    weight: Array | None,
    moving: Forgetting | RandomWalk | None,
    classes: int,
    refine: int,
) -> FoldResult:
    """Fold rows in, and visit them again so many times; with covariances between classes in pieces."""
    likelihood = Softmax(classes)
    rows = len(labels)
    if refine or not isinstance(belief, DenseGaussian):
        sites = fold(belief, likelihood, design, labels, sample_weight=weight, dynamics=moving)
        if refine:
            sweep(belief, likelihood, design, labels, sites, sample_weight=weight, n_sweeps=refine)
        return sites
    size, worked = max(1, ROOM // classes**2), belief if rows * classes**2 <= ROOM else belief.copy()
    scores = np.full(rows, np.nan)
    for first in range(0, rows, size):
        part = slice(first, first + size)
        some = None if weight is None else weight[part]
        found = fold(worked, likelihood, _part(design, part), labels[part], sample_weight=some, dynamics=moving)
        scores[part] = found.log_predictive
    if worked is not belief:
        belief.become(worked)
    return found._replace(log_predictive=scores) if rows else fold(belief, likelihood, design, labels)


def latents(belief: ClassBelief, design: Rows | Block, classes: int) -> tuple[Array, Array]:
    """Mean (n, K), and covariance (n, K, K) or variances (n, K), of every row's latents."""
    mean, spread = belief.class_marginals(design, classes)
    return mean, spread


def marginals(belief: ClassBelief, design: Rows | Block, classes: int) -> list[Moments]:
    """Mean and variance of every row's latent, one record for each class."""
    mean, spread = latents(belief, design, classes)
    variance = np.einsum("nkk->nk", spread) if spread.ndim == 3 else spread
    return [Moments(mean[:, k], variance[:, k]) for k in range(classes)]


def draws(belief: ClassBelief, classes: int, n_samples: int, rng: np.random.Generator) -> list[Array]:
    """Weights (n, d) drawn for each class; those of one draw belong together."""
    found = belief.sample(n_samples, rng).reshape(n_samples, classes, -1)
    return [found[:, k] for k in range(classes)]


def _part(design: Rows | Block, part: slice) -> Rows | Block:
    return Block(design.array[part]) if isinstance(design, Block) else design[part]
