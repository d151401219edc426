"""One pass over rows with the network linearised at the mean: no samples, one compiled loop.

With η = h(μ) and its Jacobian J at the row, the belief N(μ, (Ψ + WW')⁻¹) gives η the covariance S = JΛ⁻¹J'. The
likelihood's score g and information RR' are taken at outputs that this uncertainty has pulled towards zero
(:mod:`gaussfold.deep.broadened`), the expectations of R-VGA in closed form. With V = [W, J'R] and the eigenvalues
λ and vectors U of V'Ψ⁻¹V, one small matrix serves for both steps:

    μ ← μ + (Ψ + VV')⁻¹ J'g = μ + Ψ⁻¹d - Ψ⁻¹V U (1 + λ)⁻¹ U' V'Ψ⁻¹d,      d = J'g,

and W ← V U of the largest p eigenvalues, what is dropped staying on the diagonal Ψ. Exact for linear models while the
rank lasts.

Each row is scored before it is learned, at several widths of the belief. Which predicts best is known at the end
without rows held out.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import likelihoods
from gaussfold.deep import broadened
from gaussfold.deep.families import form_of
from gaussfold.deep.fisher import Model
from gaussfold.types import Array

WIDTHS = (1.0, 0.3, 0.1, 0.03)
"""Factors of the covariance that are tried as the rows go by."""
LENGTH = 256
"""Rows of a compiled loop; shorter ones are filled up with rows that do nothing."""
RECENT = 3.0
"""Scores and residuals are averaged with weights that grow like t^(RECENT - 1): the first rows meet a network that
knows nothing."""


class Task(NamedTuple):
    """What is compiled for."""

    model: Model
    stacked: bool
    learned_noise: bool
    robust: bool


class Belief(NamedTuple):
    """What is carried from row to row."""

    mean: jax.Array
    W: jax.Array
    psi: jax.Array
    noise: jax.Array
    """Variance of the noise, if it is learned."""
    count: jax.Array
    """Rows learned."""
    gains: jax.Array
    """Running mean, for each width, of its score minus the first one's; and of the squares: (2, widths)."""


FIELDS = ("mean", "W", "psi", "noise", "count", "gains")
"""Of a belief, in order, as model files name them."""


class Given(NamedTuple):
    """What stays the same."""

    prior: jax.Array
    """Precision of the prior, (D,)."""
    forgetting: jax.Array
    walk: jax.Array
    """Variance by which each parameter moves between rows, in units of its prior's."""
    robust: jax.Array


def start(mean: jax.Array, prior: jax.Array, rank: int, noise: float) -> Belief:
    """The prior."""
    dtype = mean.dtype
    zero = jnp.zeros((), dtype)
    gains = jnp.zeros((2, len(WIDTHS)), dtype)
    return Belief(mean, jnp.zeros((mean.size, rank), dtype), prior, zero + noise, zero, gains)


def _gram(belief: Belief) -> jax.Array:
    return jnp.eye(belief.W.shape[1], dtype=belief.psi.dtype) + belief.W.T @ (belief.W / belief.psi[:, None])


def _aged(belief: Belief, given: Given) -> Belief:
    """Before a row: precision relaxes towards the prior's, or parameters walk at random; neither, and nothing moves."""
    keep = given.forgetting
    psi, W = keep * belief.psi + (1.0 - keep) * given.prior, jnp.sqrt(keep) * belief.W
    aged = belief._replace(psi=psi, W=W)

    def walked(aged: Belief) -> Belief:
        """(Λ⁻¹ + Q)⁻¹ by Woodbury's identity, still of rank p."""
        inverse = 1.0 / aged.psi
        scaled = inverse[:, None] * aged.W
        diagonal = inverse + given.walk / given.prior
        inner = _gram(aged) - scaled.T @ (scaled / diagonal[:, None])
        lower = jnp.linalg.cholesky(inner)
        W = jax.scipy.linalg.solve_triangular(lower, (scaled / diagonal[:, None]).T, lower=True).T
        return aged._replace(psi=1.0 / diagonal, W=W)

    found: Belief = jax.lax.cond(given.walk > 0.0, walked, lambda aged: aged, aged)
    return found


class Seen(NamedTuple):
    """A row, as the belief sees it: outputs, their Jacobian and their variances."""

    eta: jax.Array
    J: jax.Array
    variance: jax.Array


def _seen(task: Task, belief: Belief, x: jax.Array) -> Seen:
    eta, pull = jax.vjp(lambda flat: task.model.eta(flat, x, task.stacked), belief.mean)
    (J,) = jax.vmap(pull)(jnp.eye(eta.size, dtype=eta.dtype))
    scaled = J / belief.psi
    variance = (scaled * J).sum(axis=1)
    if belief.W.shape[1]:
        across = scaled @ belief.W
        variance = variance - (across * jnp.linalg.solve(_gram(belief), across.T).T).sum(axis=1)
    return Seen(eta, J, jnp.maximum(variance, 0.0))


def _site(task: Task, belief: Belief, seen: Seen, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Score g and root R of the information, in terms of the outputs."""
    likelihood = task.model.likelihood
    if task.learned_noise:
        known = ~jnp.isnan(y)
        away = jnp.where(known, y - seen.eta, 0.0)
        return away / belief.noise, jnp.diag(known / jnp.sqrt(belief.noise)).astype(seen.eta.dtype)
    form, at = form_of(likelihood), broadened.pulled(likelihood, seen.eta, seen.variance)
    score = jax.grad(lambda eta: form.log_prob(y[None], eta[None])[0])(at)
    return score, form.root(y, at)


def _noise(task: Task, belief: Belief) -> jax.Array | float:
    """Variance of normal noise, learned or known."""
    likelihood = task.model.likelihood
    return likelihood.std**2 if isinstance(likelihood, likelihoods.Gaussian) else belief.noise


def _noise_after(belief: Belief, seen: Seen, y: jax.Array, weight: jax.Array) -> jax.Array:
    """The noise's variance with what the row leaves unexplained: E(y - η)² after the row, averaged over outputs."""
    share = belief.noise / (belief.noise + seen.variance)
    left = (share * (y - seen.eta)) ** 2 + share * seen.variance
    fresh = jnp.nanmean(left)
    rate = jnp.minimum(0.5, weight * RECENT / (belief.count + 10.0))
    return belief.noise + rate * (fresh - belief.noise)


def _learned(task: Task, given: Given, belief: Belief, row: tuple[jax.Array, ...]) -> tuple[Belief, jax.Array]:
    """The belief after a row, and the row's log predictive density before it."""
    x, y, weight = row
    belief = _aged(belief, given)
    seen = _seen(task, belief, x)
    noise = belief.noise if task.learned_noise else None
    each = jnp.stack(
        [
            broadened.log_prob(task.model.likelihood, y[None], seen.eta[None], width * seen.variance[None], noise)[0]
            for width in WIDTHS
        ]
    )
    if task.robust:  # a residual far out counts less: the inverse multiquadric of a normal's distance
        spread = seen.variance + _noise(task, belief)
        weight = weight / (1.0 + jnp.nanmean((y - seen.eta) ** 2 / spread) / given.robust**2)
    score, root = _site(task, belief, seen, y)
    V = jnp.concatenate([belief.W, jnp.sqrt(weight) * (seen.J.T @ root)], axis=1)
    scaled = V / belief.psi[:, None]
    values, vectors = jnp.linalg.eigh(scaled.T @ V)
    pull = weight * (score @ seen.J)
    inside = vectors @ ((vectors.T @ (scaled.T @ pull)) / (1.0 + jnp.maximum(values, 0.0)))
    mean = belief.mean + pull / belief.psi - scaled @ inside
    rank = belief.W.shape[1]
    W = V @ vectors[:, vectors.shape[1] - rank :]
    psi = belief.psi + jnp.maximum((V * V).sum(axis=1) - (W * W).sum(axis=1), 0.0)
    gain = each - each[0]
    rate = jnp.minimum(1.0, weight * RECENT / (belief.count + RECENT))
    gains = belief.gains + rate * (jnp.stack([gain, gain * gain]) - belief.gains)
    after = Belief(mean, W, psi, belief.noise, belief.count + weight, gains)
    if task.learned_noise:
        after = after._replace(noise=_noise_after(belief, seen, y, weight))
    return after, each[jnp.argmax(_fair(belief))]


def _fair(belief: Belief) -> jax.Array:
    """Gains of the widths that are more than chance; the first has none and needs none."""
    first, second = belief.gains
    error = jnp.sqrt(jnp.maximum(second - first * first, 0.0) * RECENT / jnp.maximum(belief.count, 1.0))
    return jnp.where(first > error, first, 0.0).at[0].set(1e-12)


def width_of(belief: Belief) -> float:
    """The width that has predicted best, by more than a standard error; 1 otherwise."""
    return WIDTHS[int(jnp.argmax(_fair(belief)))]


def scan(task: Task, belief: Belief, given: Given, rows: tuple[jax.Array, ...]) -> tuple[Belief, jax.Array, jax.Array]:
    """Rows (x, y, weight), one after the other: the belief, the log predictive of each, and whether it is good."""

    def step(now: Belief, row: tuple[jax.Array, ...]) -> tuple[Belief, tuple[jax.Array, jax.Array]]:
        nothing = jnp.zeros((), now.mean.dtype)
        after, value = jax.lax.cond(row[2] > 0.0, lambda: _learned(task, given, now, row), lambda: (now, nothing))
        good = jnp.isfinite(after.mean).all() & jnp.isfinite(after.psi).all() & jnp.isfinite(value)
        return after, (value, good)

    after, (values, good) = jax.lax.scan(step, belief, rows)
    return after, values, good


_run = partial(jax.jit, static_argnums=0)(scan)


def run(task: Task, belief: Belief, given: Given, rows: tuple[Array, ...]) -> tuple[Belief, Array, int | None]:
    """All rows, one after the other; returns the belief, the log predictive of each, and the first bad row if any."""
    found: list[Array] = []
    count = len(rows[2])
    for first in range(0, count, LENGTH):
        part = [array[first : first + LENGTH] for array in rows]
        lack = LENGTH - len(part[2])
        if lack:
            part = [np.concatenate([array, np.zeros((lack, *array.shape[1:]), array.dtype)]) for array in part]
        x, y, weight = part
        moved = (jnp.asarray(x), jnp.asarray(y, belief.mean.dtype), jnp.asarray(weight, belief.mean.dtype))
        belief, values, good = _run(task, belief, given, moved)
        if not bool(good.all()):
            return belief, np.concatenate(found) if found else np.zeros(0), first + int(np.argmin(np.asarray(good)))
        found.append(np.asarray(values, dtype=np.float64)[: LENGTH - lack])
    return belief, np.concatenate(found) if found else np.zeros(0), None
