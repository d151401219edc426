"""More than two classes by a softmax: which belief holds the weights of all of them, and what is read off it.

Up to `JOINT_WEIGHTS` weights one Gaussian covers the weights of all classes; beyond, and for low-rank and diagonal
posteriors, every class has a Gaussian of its own (a block-diagonal covariance).
"""

from __future__ import annotations

import warnings
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

from gaussfold import checks
from gaussfold.batch.softmax import Blocks, ClassRows, Joint, best_width
from gaussfold.beliefs.blocks import BlockGaussian
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.dense.exchange import Independent
from gaussfold.beliefs.diagonal.blocks import DiagonalBlocks
from gaussfold.beliefs.diagonal.class_stack import DiagonalClassStack
from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.estimators.coordinates import Ways
from gaussfold.estimators.priors import AnyBelief, Prior
from gaussfold.expectations.classes import class_log_probabilities
from gaussfold.rows import Block, Rows
from gaussfold.schema import equal
from gaussfold.types import Array, Moments

ClassBelief: TypeAlias = DenseGaussian | BlockGaussian | DiagonalBlocks | DiagonalClassStack
"""What holds the weights of all classes."""
JOINT_WEIGHTS = 200
"""Up to so many weights covariances between classes are kept: a row costs classes times the square of this."""
MOST_JOINT = 4000
"""Weights from which on a covariance between all of them is refused: 128 MB, and seconds a row."""
MOST_NUMBERS = 1 << 28
"""Numbers that the covariances of all classes may have: 2 GB."""
LOOSE = 0.02
"""Standard deviations by which a settled posterior may still move without a warning.

Digits end at 2e-4. Where some rows weigh 10⁷ times what others do, the nodes that average over latents let it wander by
about .005 however many steps it takes.
"""
MOST_CLASSES = 1000
"""More are not learned by a softmax: a row averages over 2K nodes for each of K classes."""
ENOUGH = 4.0
"""Weights for each row up to which sites say how wide the prior should be."""
WAYS = ("auto", "softmax", "ovr")
COVARIANCES = ("auto", "joint", "block")


def is_softmax(multi_class: str, reasons: list[str]) -> bool:
    """Whether classes are learned by a softmax: as asked, or by "auto" unless some option is one-vs-rest's alone."""
    checks.one_of("multi_class", multi_class, WAYS)
    if multi_class == "softmax" and reasons:
        msg = f"multi_class='softmax' does not go with {', '.join(reasons)}; leave that out, or use multi_class='ovr'"
        raise ValueError(msg)
    return multi_class == "softmax" or (multi_class == "auto" and not reasons)


def is_joint(prior: Prior, classes: int, class_covariance: str) -> bool:
    """Whether one Gaussian holds the weights of all classes, with what is between them."""
    checks.one_of("class_covariance", class_covariance, COVARIANCES)
    if prior.covariance != "full":
        if class_covariance == "joint":
            msg = (
                f"class_covariance='joint' with covariance={prior.covariance!r}: only a full covariance has room for "
                "what is between classes; use covariance='full', or class_covariance='block'"
            )
            raise ValueError(msg)
        return False
    joint = classes * prior.dim <= JOINT_WEIGHTS if class_covariance == "auto" else class_covariance == "joint"
    _check_size(prior.dim, classes, joint=joint)
    return joint


def start(prior: Prior, classes: int, *, joint: bool) -> ClassBelief:
    """A new belief over the weights of all classes that has seen nothing."""
    if prior.covariance == "diagonal":
        return prior.class_belief(classes)
    if joint:
        return Independent(*(np.tile(part, classes) for part in prior.independent())).belief()
    made = [prior.belief() for _ in range(classes)]
    return BlockGaussian([block for block in made if isinstance(block, DenseGaussian | LowRankGaussian)])


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
    if classes > MOST_CLASSES:
        msg = (
            f"classes: {classes} of them, and a softmax with covariance='full' takes at most {MOST_CLASSES}; use "
            "covariance='diagonal', which learns so many one-vs-rest, or multi_class='ovr'"
        )
        raise ValueError(msg)


def check_kind(belief: AnyBelief, prior: Prior, classes: int, *, joint: bool) -> None:
    """Refuse the belief of a model file that is not what these parameters say."""
    diagonal = DiagonalClassStack if isinstance(prior.std, str) else DiagonalBlocks
    apart = diagonal if prior.covariance == "diagonal" else BlockGaussian
    needed = DenseGaussian if joint else apart
    equal("belief", type(belief).__name__, needed.__name__, "as covariance and class_covariance say")
    equal("belief", belief.dim, classes * prior.dim, "one parameter for each class and feature")
    if isinstance(belief, BlockGaussian):
        prior.check_kind(belief.blocks, banks=False)


def trusted(ways: Ways, classes: int, count: int) -> Ways:
    """How far the evidence for a width may lead after so many rows; as it is, where classes are learned one by one.

    The sites of a stream of classes are made once, each as wide as the prior was: among far fewer rows than weights
    they say that it was right, whatever it was, and a width that follows them runs away.
    """
    share = ENOUGH * max(count, 1) / (classes * ways.mean.size) if classes > 1 else 1.0
    return ways._replace(reach=ways.reach * min(1.0, share))


class Settled(NamedTuple):
    """What `settled` finds."""

    belief: ClassBelief
    priors: tuple[Independent, ...]
    """Of the belief, or of each block."""


def settled(
    X: Array,
    y: Array,
    weight: Array | None,
    classes: int,
    prior: Independent,
    reach: float | None,
    *,
    joint: bool,
    apart: bool,
) -> Settled:
    """The batch optimum of a softmax under the prior of each class's weights.

    With a ``reach`` the prior's width is that of the best leave-one-out score, ``apart`` from the last weight's.
    """
    given = np.ones(len(y)) if weight is None else weight
    rows = ClassRows(X, y.astype(np.intp), given, classes, prior.mean, prior.std)
    if joint:
        whole, width, move = best_width(Joint.start(rows), rows, reach, apart=apart)
        std = np.tile(rows.widened(width, apart=apart).std, classes)
        found = Settled(whole.beliefs()[0], (Independent(np.tile(prior.mean, classes), std),))
    else:
        parts, width, move = best_width(Blocks.start(rows), rows, reach, apart=apart)
        own = Independent(prior.mean, rows.widened(width, apart=apart).std)
        found = Settled(BlockGaussian(parts.beliefs()), (own,) * classes)
    if move > LOOSE:
        msg = (
            f"fit has not settled: the posterior still moves by {move:.1e} standard deviations; use it as it is, or "
            "give refine=0 for one pass"
        )
        warnings.warn(msg, ConvergenceWarning, stacklevel=6)
    return found


def latents(belief: AnyBelief, design: Rows | Block, classes: int) -> tuple[Array, Array]:
    """Mean (n, K), and covariance (n, K, K) or variances (n, K), of every row's latents."""
    mean, spread = cast("ClassBelief", belief).class_marginals(design, classes)
    return mean, spread


def log_probabilities(belief: AnyBelief, design: Rows | Block, classes: int) -> Array:
    """Log p (n, K) of every class, what is not known of the weights averaged over."""
    if isinstance(belief, DiagonalClassStack):
        return np.asarray(log_softmax(belief.class_predictions(design), axis=1))
    return class_log_probabilities(*latents(belief, design, classes))


def marginals(belief: AnyBelief, design: Rows | Block, classes: int) -> list[Moments]:
    """Mean and variance of every row's latent, one record for each class."""
    mean, spread = latents(belief, design, classes)
    variance = np.einsum("nkk->nk", spread) if spread.ndim == 3 else spread
    return [Moments(mean[:, k], variance[:, k]) for k in range(classes)]


def draws(belief: AnyBelief, classes: int, n_samples: int, rng: np.random.Generator) -> list[Array]:
    """Weights (n, d) drawn for each class; those of one draw belong together."""
    found = belief.sample(n_samples, rng).reshape(n_samples, classes, -1)
    return [found[:, k] for k in range(classes)]


def of_priors(priors: list[AnyBelief], *, joint: bool) -> AnyBelief:
    """The belief of all classes that knows these priors only."""
    if joint:
        return priors[0]
    return BlockGaussian([each for each in priors if isinstance(each, DenseGaussian | LowRankGaussian)])
