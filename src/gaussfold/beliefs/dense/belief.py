"""A Gaussian with a full covariance, kept as a square root so that it cannot lose positive definiteness."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Self, final

import numpy as np

from gaussfold import checks, schema
from gaussfold.beliefs.dense import passes, several
from gaussfold.beliefs.dense.delta import MatrixDelta
from gaussfold.beliefs.natural import combined
from gaussfold.beliefs.visits import Visits
from gaussfold.dynamics import Forgetting, moving
from gaussfold.engine.dense.absorb import absorb_row
from gaussfold.linalg.roots import inverse_root, log_det, lower_root, root_from_precision, triangularise
from gaussfold.linalg.triangles import solve_triangular
from gaussfold.observations import Observations, admit
from gaussfold.protocols import Belief
from gaussfold.rows import as_rows
from gaussfold.trace import ONCE, Pass, Trace, check_moments, learn_before_failure
from gaussfold.types import Array, ArrayLike, ClassProgram, Moments, Program

PARTS = (schema.Part("mean", ("d",), "double"), schema.Part("factor", ("d", "d"), "double"))
"""What a model file holds of it."""
VARIANCES = (schema.Part("factor's variances", ("d",), positive=True),)
"""And what must come of it."""


@final
class DenseGaussian:
    """N(mean, cov) over d parameters, stored as the mean and a factor F with cov = F F'.

    Parameters
    ----------
    mean
        Mean vector, shape (d,).
    cov
        Covariance, shape (d, d), symmetric positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> belief = DenseGaussian([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> mean, variance = belief.marginal(np.array([[1.0, -1.0]]))
    >>> print(mean, variance)
    [-1.] [2.]
    """

    def __init__(self, mean: ArrayLike, cov: ArrayLike) -> None:
        centre = np.array(mean, dtype=float, ndmin=1)
        matrix = np.array(cov, dtype=float, ndmin=2)
        if centre.ndim != 1 or matrix.shape != (centre.size, centre.size):
            msg = f"cov: shape {matrix.shape} does not fit mean of shape {centre.shape}; (d, d) and (d,)"
            raise ValueError(msg)
        if not (np.isfinite(centre).all() and np.isfinite(matrix).all()):
            msg = "mean, cov: NaN or infinity found; only finite numbers are allowed"
            raise ValueError(msg)
        self._mean = centre
        self._factor = lower_root(matrix, "cov")

    @classmethod
    def from_factor(cls, mean: ArrayLike, factor: ArrayLike) -> Self:
        """N(mean, factor @ factor.T) for any square factor of full rank; nothing is factorised."""
        self = cls.__new__(cls)
        self._mean = np.array(mean, dtype=float, ndmin=1)
        self._factor = np.array(factor, dtype=float, ndmin=2, order="C")
        if self._factor.shape != (self._mean.size, self._mean.size):
            msg = f"factor: shape {self._factor.shape}; ({self._mean.size}, {self._mean.size}) is needed"
            raise ValueError(msg)
        return self

    @classmethod
    def isotropic(cls, dim: int, std: float = 1.0, mean: ArrayLike = 0.0) -> Self:
        """N(mean, std² I); ``mean`` a number or one per parameter."""
        checks.room("dim", dim, checks.whole("dim", dim) ** 2, "use DiagonalGaussian or LowRankGaussian")
        return cls.independent(np.broadcast_to(np.asarray(mean, dtype=float), (dim,)), np.full(dim, std))

    @classmethod
    def independent(cls, mean: ArrayLike, std: ArrayLike) -> Self:
        """N(mean, diag(std²)): one standard deviation per parameter."""
        deviations = np.asarray(std, dtype=float)
        checks.scales("std", deviations)
        return cls.from_factor(checks.finite_vector("mean", mean, deviations.size), np.diag(deviations))

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return int(self._mean.size)

    @property
    def mean(self) -> Array:
        """Mean vector (a copy)."""
        return self._mean.copy()

    @property
    def cov(self) -> Array:
        """Covariance matrix, computed from the factor."""
        product = self._factor @ self._factor.T
        return 0.5 * (product + product.T)

    @property
    def factor(self) -> Array:
        """F with cov = F F' (a copy). Only F F' has meaning: F is determined up to a rotation."""
        return self._factor.copy()

    def variance(self) -> Array:
        """Marginal variance of each parameter."""
        return np.asarray(np.einsum("ij,ij->i", self._factor, self._factor))

    def marginal(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for each row x of X (dense or sparse)."""
        rows = as_rows(X, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):  # looked for, and named
            seen = np.asarray(rows @ self._factor)
            return check_moments(Moments(np.asarray(rows @ self._mean), np.einsum("ij,ij->i", seen, seen)))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, shape (n, dim)."""
        return self._mean + rng.standard_normal((n, self.dim)) @ self._factor.T

    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density at each row of theta (or at one vector)."""
        lower = triangularise(self._factor)
        away = np.asarray(theta, dtype=float) - self._mean
        z = solve_triangular(lower, np.atleast_2d(away).T, lower=True)
        value = -0.5 * np.einsum("ij,ij->j", z, z) - 0.5 * (log_det(lower) + self.dim * math.log(2.0 * math.pi))
        return np.asarray(value[0] if away.ndim == 1 else value)

    def entropy(self) -> float:
        """Differential entropy in nats."""
        return 0.5 * (log_det(triangularise(self._factor)) + self.dim * (1.0 + math.log(2.0 * math.pi)))

    def kl(self, other: DenseGaussian) -> float:
        """KL(self ‖ other) in nats."""
        theirs = triangularise(other.factor)
        ours = triangularise(self._factor)
        scaled = solve_triangular(theirs, ours, lower=True)
        shift = solve_triangular(theirs, other.mean - self._mean, lower=True)
        spread = float(np.einsum("ij,ij->", scaled, scaled)) - self.dim
        return 0.5 * (spread + float(shift @ shift) + log_det(theirs) - log_det(ours))

    def to_dense(self) -> DenseGaussian:
        """Itself."""
        return self

    def natural(self) -> tuple[Array, Array]:
        """Precision Λ and Λ·mean: the parameters that add when beliefs are multiplied."""
        inverse = inverse_root(triangularise(self._factor))
        return inverse.T @ inverse, inverse.T @ (inverse @ self._mean)

    @classmethod
    def from_natural(cls, precision: Array, precision_mean: Array) -> Self:
        """The belief with the given precision Λ and Λ·mean."""
        factor = root_from_precision(precision, "precision")
        return cls.from_factor(factor @ (factor.T @ precision_mean), factor)

    @classmethod
    def combine(cls, prior: DenseGaussian, shards: Iterable[DenseGaussian]) -> Self:
        """Prior × Π (shard / prior): what one pass over all shards' data would know, learned in parallel."""
        return cls.from_natural(*combined(prior, shards))

    def tempered(self, shards: int) -> Self:
        """N(mean, shards · cov): the same mean, known as well as one of so many parts of the data would tell."""
        return type(self).from_factor(self._mean, self._factor * math.sqrt(checks.whole("shards", shards)))

    def delta(self, base: DenseGaussian) -> MatrixDelta:
        """What was learned since ``base``: natural parameters less its own. Over workers they add up.

        Exactly for normal noise of known size: one pass over all data knows the same. For other likelihoods sites are
        made at the base's mean instead of that of all rows before, so less is lost the more the base knows.
        """
        checks.same_dim("base", base.dim, self.dim)
        return MatrixDelta.between(base.natural(), self.natural())

    def apply(self, delta: MatrixDelta) -> None:
        """Multiply in what was learned elsewhere, whole or not at all; in place."""
        checks.same_dim("delta", delta.exponent.size, self.dim)
        precision, shift = self.natural()
        gained, moved = delta.natural()
        self.become(self.from_natural(precision + gained, shift + moved))

    def copy(self) -> Self:
        """An independent copy."""
        return type(self).from_factor(self._mean, self._factor)

    def become(self, other: DenseGaussian) -> None:
        """Take over another belief's numbers; the other must not be used any more."""
        vars(self).update(vars(other))

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays that hold everything; see :meth:`from_state`."""
        return {"mean": self._mean.copy(), "factor": self._factor.copy()}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        """The belief of :meth:`state`, bit for bit."""
        schema.check(state, PARTS)
        self = cls.from_factor(state["mean"], state["factor"])
        schema.check({"factor's variances": self.variance()}, VARIANCES)
        return self

    def relax(self, factor: float, prior: DenseGaussian) -> None:
        """Λ ← factor·Λ + (1-factor)·Λ₀, and the same for Λ·mean."""
        checks.same_dim("prior", prior.dim, self.dim)
        if checks.between("factor", factor, 0, 1) == 1.0:
            return
        precision, precision_mean = self.natural()
        base, base_mean = prior.natural()
        self.become(
            self.from_natural(
                factor * precision + (1.0 - factor) * base, factor * precision_mean + (1.0 - factor) * base_mean
            )
        )

    def diffuse(self, variance: float | Array) -> None:
        """P ← P + Q, Q diagonal with ``variance``, on the square root: a QR of [F, √Q]."""
        steps = checks.variances("variance", variance, self.dim)
        if not steps.any():
            return
        wide = np.hstack([self._factor, np.diag(np.sqrt(steps))])
        self._factor = triangularise(wide)

    def absorb(self, x: Array, precision: float, shift: float) -> None:
        """Multiply by one site exp(shift·f - ½·precision·f²), f = x'θ."""
        x = checks.finite_vector("x", x, self.dim)
        checks.number("shift", shift)
        seen = x @ self._factor
        variance = float(seen @ seen)
        grown = 1.0 + precision * variance
        if not 0.0 < grown < math.inf:
            msg = f"precision={precision!r}: the belief would no longer be a Gaussian (1 + λ v = {grown})"
            raise ValueError(msg)
        reach = self._factor @ seen
        self._mean = self._mean + reach * ((shift - precision * float(x @ self._mean)) / grown)
        root = math.sqrt(grown)
        self._factor = self._factor - np.outer(reach, seen) * (precision / (root * (root + 1.0)))

    def absorb_row(self, row: Array, y: float, program: Program) -> Trace | None:
        """Visit one float64 row of shape (1, d), as :meth:`absorb_stream` would, in a few microseconds.

        None, and nothing has changed, if the row or the label is not fit to learn from; ``absorb_stream`` says why.
        """
        columns = np.zeros((5, 1))
        return Trace(*columns) if absorb_row(self._factor, self._mean, row, y, program, columns) else None

    def absorb_stream(self, data: Observations, program: Program, how: Pass = ONCE, *loose: object) -> Trace:
        """Visit rows in order, each once: marginal, site, absorb."""
        data = admit(data, self.dim, *loose)
        dynamics, sites, block_size, whole = how
        if not whole:
            again = Pass(dynamics, sites, block_size)
            return learn_before_failure(lambda part: self.absorb_stream(part, program, again), data)
        trace = Trace.empty(data.y.size)
        if sites is not None:
            trace.site_precision[:] = sites.site_precision[: data.y.size]
            trace.site_shift[:] = sites.site_shift[: data.y.size]
        visits, drift = Visits(data, program, trace), moving(dynamics)
        if drift is None:
            after = passes.static_pass(self._mean, self._factor, visits, block_size)
        elif isinstance(drift, Forgetting):
            prior = _dense(drift.prior)
            now, towards = (passes.Known(each.mean, each.natural()[0]) for each in (self, prior))
            after = passes.forgetting_pass(now, towards, drift.factor, visits)
        else:
            after = passes.walking_pass(self._mean, self.cov, drift.variance(self.dim), visits)
        if data.learned.any():  # else nothing changes, to the last bit
            self._mean, self._factor = after
        return trace

    # Several latents a row.

    def latents(self, H: Array) -> tuple[Array, Array]:
        """Mean (q,) and covariance (q, q) of Hθ, for a matrix H of q rows."""
        seen = H @ self._factor
        return np.asarray(H @ self._mean), np.asarray(seen @ seen.T)

    def class_marginals(self, X: ArrayLike, classes: int) -> tuple[Array, Array]:
        """Mean (n, K) and covariance (n, K, K) of the x'θ_k, where θ holds the weights of K classes in turn."""
        return several.class_marginals(self._mean, self._factor, X, classes)

    def absorb_classes(self, data: Observations, program: ClassProgram, how: Pass = ONCE) -> Trace:
        """Visit rows with classes in order, each once; θ holds the weights of the classes one after the other."""
        classes = program.nodes.shape[0]
        data = admit(data, several.features(self.dim, classes))
        trace = Trace.several(data.y.size, classes, how.sites)
        drift = moving(how.dynamics)
        worked = self.copy()
        if drift is None:
            several.joint_pass(*worked.parts(), data, program, trace)
        else:
            for i, learned in enumerate(data.learned):
                if learned:
                    drift.tick(worked)
                row = trace.rows(i, i + 1)
                several.joint_pass(*worked.parts(), data.part(slice(i, i + 1)), program, row, i)
        if data.learned.any():  # else nothing changes, to the last bit
            self.become(worked)
        return trace

    def parts(self) -> tuple[Array, Array]:
        """Mean and factor themselves, for a loop that writes to them."""
        return self._mean, self._factor


def _dense(prior: Belief) -> DenseGaussian:
    if not isinstance(prior, DenseGaussian):
        msg = f"prior: a {type(prior).__name__}; a dense belief forgets towards a DenseGaussian, so use to_dense()"
        raise ValueError(msg)  # noqa: TRY004 - the one kind of error that arguments raise here
    return prior
