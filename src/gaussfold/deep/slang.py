"""SLANG: natural gradients with a precision that is low rank plus diagonal (factor-analysis (3.6)-(3.9))."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.beliefs.lowrank.options import check_rank
from gaussfold.checks import between, flag, one_of, positive, whole
from gaussfold.deep.curvature import Columns, columns_of
from gaussfold.deep.draws import DRAWS
from gaussfold.deep.draws import check as check_draws
from gaussfold.deep.method import Method
from gaussfold.deep.options import Training
from gaussfold.deep.training import Taken, kept
from gaussfold.deep.trees import Layout
from gaussfold.deep.types import Batch, Document, Hyper, Inner, LogLikelihoodFunction, Rate, Schedule, Spread, Tree
from gaussfold.rules import GaussNewton


class LowRankPrecision:
    """Λ = UU' + D through Woodbury's identity: M = I + U'D⁻¹U, K×K."""

    def __init__(self, U: jax.Array, diagonal: jax.Array) -> None:
        self.U, self.scaled, self.diagonal = U, U / diagonal[:, None], diagonal
        self.rank = U.shape[1]
        if self.rank:
            M = jnp.eye(self.rank, dtype=U.dtype) + U.T @ self.scaled
            self.lower = jnp.linalg.cholesky(M)

    def solve(self, right: jax.Array) -> jax.Array:
        """M⁻¹ right."""
        return jax.scipy.linalg.cho_solve((self.lower, True), right)

    def times(self, vector: jax.Array) -> jax.Array:
        """Λv."""
        return self.diagonal * vector + self.U @ (self.U.T @ vector)

    def covariance_times(self, vector: jax.Array) -> jax.Array:
        """Λ⁻¹v."""
        first = vector / self.diagonal
        return first - self.scaled @ self.solve(self.U.T @ first) if self.rank else first

    def samples(self, base: jax.Array, factors: jax.Array) -> jax.Array:
        """Draws of N(0, Λ⁻¹) from standard normals (S, D) and (S, K): lrvga Prop. 1, corrected."""
        x = base / jnp.sqrt(self.diagonal)
        return x + (self.scaled @ self.solve((factors - x @ self.U).T)).T if self.rank else x


@dataclass(frozen=True)
class SLANGProgram:
    """One natural gradient step."""

    columns: Columns
    layout: Layout
    rank: int
    n_samples: int
    samples: str
    schedules: tuple[Schedule | None, Schedule | None]
    randomised: bool
    controlled: bool = True

    def draw(self, hyper: Hyper, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Standard normals of the S networks, and a key for the randomised eigen-decomposition."""
        key = jax.random.fold_in(jax.random.wrap_key_data(hyper["key"]), step)
        size = self.layout.dim + self.rank
        normals = jax.vmap(lambda number: DRAWS[self.samples](key, number, self.n_samples, size, self.layout.dtype))(
            jnp.arange(self.n_samples)
        )
        return normals, jax.random.key_data(jax.random.fold_in(key, self.n_samples))

    def step(
        self, inner: Inner, hyper: Hyper, batches: Batch, draws: tuple[jax.Array, jax.Array], step: jax.Array
    ) -> Taken:
        """(3.6) with the precision of (3.8), (3.9); its diagonal keeps what the projection drops."""
        normals, key = draws
        mean, precision = inner["mean"], LowRankPrecision(inner["U"], inner["diagonal"])
        D, S = self.layout.dim, self.n_samples
        thetas = mean + precision.samples(normals[:, :D], normals[:, D:])
        batch = jax.tree.map(lambda a: a[0], batches)
        values, slopes, columns = jax.vmap(self.columns, in_axes=(0, None))(thetas, batch)
        slope = -hyper["scale"] * slopes.mean(axis=0)  # ĝ of (3.7)
        if self.controlled:
            # What the belief's own curvature says of where the draws happened to lie: zero on average, and all of their
            # noise if the log likelihood is quadratic and its curvature has been found.
            off = thetas.mean(axis=0) - mean
            slope = slope - (precision.times(off) - hyper["precision"] * off)
        to_mean, to_precision = (
            rate if schedule is None else schedule(step)
            for rate, schedule in zip(hyper["rates"], self.schedules, strict=True)
        )
        root = jnp.sqrt(to_precision * hyper["scale"] / S)
        V = jnp.concatenate([jnp.sqrt(1.0 - to_precision) * inner["U"].T, root * columns.reshape(-1, D)])
        U = leading(V, self.rank, jax.random.wrap_key_data(key) if self.randomised else None)
        dropped = jnp.maximum((V * V).sum(axis=0) - (U * U).sum(axis=1), 0.0)  # of a positive semidefinite matrix
        diagonal = (1.0 - to_precision) * inner["diagonal"] + to_precision * hyper["precision"] + dropped
        slope = slope + hyper["precision"] * (mean - hyper["prior_mean"])
        velocity = hyper["momentum"] * inner["velocity"] + (1.0 - hyper["momentum"]) * slope
        after = mean - to_mean * LowRankPrecision(U, diagonal).covariance_times(velocity)
        new = {"mean": after, "U": U, "diagonal": diagonal, "velocity": velocity}
        loss = -hyper["scale"] * values.mean()
        ok = jnp.isfinite(loss) & jnp.isfinite(after).all() & jnp.isfinite(diagonal).all()
        return kept(ok, new, inner), loss, ok


def leading(V: jax.Array, rank: int, key: jax.Array | None = None) -> jax.Array:
    """U (D, K) with UU' the best rank-K part of V'V, V of shape (R, D): (3.9).

    Through the R×R Gram matrix; with a key, through a random subspace of K + 8 dimensions and one power iteration
    (Halko et al.), which needs R·D·(K + 8) operations instead of R²·D.
    """
    rows = V.shape[0]
    if rank == 0:
        return jnp.zeros((V.shape[1], 0), V.dtype)
    if rank >= rows:
        return jnp.concatenate([V, jnp.zeros((rank - rows, V.shape[1]), V.dtype)]).T
    if key is not None and rank + 8 < rows:
        test = jax.random.normal(key, (rows, rank + 8), V.dtype)
        test = jnp.linalg.qr(V @ (V.T @ test))[0]
        V = jnp.linalg.qr(V @ (V.T @ test))[0].T @ V
    _, vectors = jnp.linalg.eigh(V @ V.T)
    return V.T @ vectors[:, -rank:]


class SLANG(Method):
    """A Gaussian N(μ, (UU' + D)⁻¹), learned by natural gradients with per-example gradients of any architecture.

    Parameters
    ----------
    log_likelihood, params, prior_precision, prior_mean, batch_size, max_bad_steps, seed
        As for :class:`gaussfold.deep.VIFA`; rows of a batch must not see each other (no batch normalisation).
    rank
        Columns K of U, 0 to D; 0 is VOGN.
    learning_rate, precision_rate
        η_μ and η_Σ of (3.6), in (0, 1]: numbers or schedules (functions of the step).
    momentum
        Of the mean's gradient, in [0, 1).
    n_samples, samples
        Networks per step, and how they are drawn; as for VIFA. They share a batch.
    curvature
        "fisher": squared gradients, (3.7) with its sign corrected. "gauss-newton": exact for linear models; needs a
        log likelihood of :func:`gaussfold.deep.log_likelihood`; ``gaussfold.rules.GaussNewton()`` is the same.
    eigen
        "randomised" or "exact": how the K leading directions are found.
    control_variate
        Whether the noise that the gradient has from where the networks were drawn is taken off; the paper's is not.
    init_std
        Standard deviation to start from.

    Notes
    -----
    The noise that the gradient has from where the networks were drawn is taken off by the belief's own curvature
    (a control variate; (3.7) has none), so that with all rows in a batch the posterior of a linear model is reached,
    not circled around. A training whose length is not given has at least 20/rate steps: the start
    counts e⁻²⁰ then.

    What the projection to rank K drops is kept on the diagonal, as in the SLANG paper, so that the precision's
    diagonal is that of (3.6).
    """

    kind: ClassVar[str] = "SLANG"

    def __init__(
        self,
        log_likelihood: LogLikelihoodFunction,
        params: Tree,
        rank: int = 1,
        prior_precision: Spread = 1.0,
        *,
        learning_rate: Rate = 0.05,
        precision_rate: Rate = 0.05,
        momentum: float = 0.0,
        n_samples: int = 4,
        samples: str = "independent",
        curvature: str | GaussNewton = "fisher",
        eigen: str = "randomised",
        control_variate: bool = True,
        init_std: float = 0.1,
        prior_mean: Spread = 0.0,
        batch_size: int | None = None,
        max_bad_steps: int = 10,
        seed: int = 0,
    ) -> None:
        super().__init__(log_likelihood, params, Training(prior_precision, prior_mean, batch_size, max_bad_steps, seed))
        self.rank = check_rank(rank, self.layout.dim, fewest=0)
        self._rates = (_rate("learning_rate", learning_rate), _rate("precision_rate", precision_rate))
        self.fewest_steps = max((math.ceil(20.0 / rate) for rate in self._rates if not callable(rate)), default=1)
        self.momentum = between("momentum", momentum, 0, 1, "[)")
        self.n_samples = whole("n_samples", n_samples)
        check_draws(samples, self.n_samples)
        self.samples = samples
        self.curvature, self._columns = columns_of(curvature, log_likelihood, self.layout)
        self.eigen = one_of("eigen", eigen, ("randomised", "exact"))
        self.control_variate = flag("control_variate", control_variate)
        self.init_std = positive("init_std", init_std)

    @property
    def draws_per_step(self) -> int:
        """Of the networks, and of the factors of their precision."""
        return self.n_samples * (self.rank + self.layout.dim)

    def program(self) -> SLANGProgram:
        """A natural gradient step."""
        to_mean, to_precision = (rate if callable(rate) else None for rate in self._rates)
        return SLANGProgram(
            self._columns,
            self.layout,
            self.rank,
            self.n_samples,
            self.samples,
            (to_mean, to_precision),
            self.eigen == "randomised",
            self.control_variate,
        )

    def hyper(self, rows: int, size: int) -> Hyper:
        """The prior, the share of the data in a batch, rates and momentum."""
        number = partial(jnp.asarray, dtype=self.layout.dtype)
        return self.prior_and_scale(rows, size) | {
            "key": jax.random.key_data(jax.random.key(self.seed)),
            "rates": tuple(number(0.0 if callable(rate) else rate) for rate in self._rates),
            "momentum": number(self.momentum),
        }

    def initial(self) -> Inner:
        """A diagonal precision around the given parameters."""
        dim, dtype = self.layout.dim, self.layout.dtype
        return {
            "mean": self.centre,
            "U": jnp.zeros((dim, self.rank), dtype),
            "diagonal": jnp.full(dim, self.init_std**-2, dtype),
            "velocity": jnp.zeros(dim, dtype),
        }

    def settings(self) -> Document:
        """What shapes the state, and how it is drawn."""
        return {
            "rank": self.rank,
            "n_samples": self.n_samples,
            "samples": self.samples,
            "curvature": self.curvature,
            "eigen": self.eigen,
            "control_variate": self.control_variate,
        }

    def belief(self, inner: Inner) -> LowRankGaussian:
        """N(μ, (UU' + D)⁻¹)."""
        U = np.asarray(inner["U"]) if self.rank else np.zeros((self.layout.dim, 1))  # a low-rank belief has a factor
        return LowRankGaussian(inner["mean"], U, inner["diagonal"], dtype=self.layout.dtype, projection="eigen")


def _rate(name: str, value: Rate) -> Rate:
    if callable(value):
        return value
    return between(name, value, 0, 1, "(]", remedy=f"give one, such as {name}=0.01, or a schedule")
