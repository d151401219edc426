"""One pass over rows with the network linearised at the mean: no samples, one compiled loop.

At each row η = h(μ) and its Jacobian J give the outputs their law under the belief, N(η, S); the likelihood's score and
information then make a site on them, and :mod:`gaussfold.deep.factored` takes it in. The expectations of R-VGA have
closed forms in :mod:`gaussfold.deep.broadened` (outputs pulled towards zero by how uncertain they are), and are those
under the posterior: R-VGA's implicit update, rvga (73)-(77), which for a linearised network is an equation in C
numbers. Exact for linear models with normal noise while the rank lasts.

Each row is scored before it is learned, at several widths of the belief and, where the noise is learned, at several
levels of it. Which predicts best is known at the end without rows held out.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import likelihoods
from gaussfold.deep import broadened
from gaussfold.deep.factored import Belief, Given, Seen, absorbed, aged, seen_by
from gaussfold.deep.families import form_of
from gaussfold.deep.fisher import Model
from gaussfold.types import Array

WIDTHS = (1.0, 0.3, 0.1, 0.03)
"""Factors of the covariance that are tried as the rows go by."""
LEVELS = (1.0, 0.5, 0.25, 2.0)
"""Factors of the variance of a noise that is learned, tried with each of them."""
LENGTH = 256
"""Rows of a compiled loop; shorter ones are filled up with rows that do nothing."""
RECENT = 3.0
"""Scores are averaged with weights that grow like t^(RECENT - 1): the first rows meet a network that knows nothing."""
RESIDUALS = 5.0
"""The same for what rows leave unexplained: there the first rows mislead for longer."""
SETTLING = 3
"""Newton steps towards the implicit site."""


class Task(NamedTuple):
    """What is compiled for."""

    model: Model
    stacked: bool
    learned_noise: bool
    robust: bool
    ages: bool


def candidates(learned_noise: bool) -> tuple[tuple[float, float], ...]:
    """Pairs of a width and a level; the first is (1, 1)."""
    return tuple((width, level) for level in (LEVELS if learned_noise else (1.0,)) for width in WIDTHS)


def _looked(task: Task, belief: Belief, x: jax.Array) -> Seen:
    eta, pull = jax.vjp(lambda flat: task.model.eta(flat, x, task.stacked), belief.mean)
    (J,) = jax.vmap(pull)(jnp.eye(eta.size, dtype=eta.dtype))
    return seen_by(belief, eta, J)


def _scores(task: Task, belief: Belief, seen: Seen, y: jax.Array) -> jax.Array:
    """Log predictive density of the row for each candidate."""
    widths, levels = jnp.asarray(candidates(task.learned_noise), seen.eta.dtype).T
    each = (len(widths), *seen.eta.shape)
    noise = (levels * belief.noise)[:, None] if task.learned_noise else None
    labels = jnp.broadcast_to(y, (len(widths), *y.shape))
    variance = widths[:, None] * seen.variance
    return broadened.log_prob(task.model.likelihood, labels, jnp.broadcast_to(seen.eta, each), variance, noise)


def _site(
    task: Task, belief: Belief, y: jax.Array, mean: jax.Array, variance: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Score g and root R of the information, in terms of outputs of these moments."""
    if task.learned_noise:
        known = ~jnp.isnan(y)
        away = jnp.where(known, y - mean, 0.0)
        return away / belief.noise, jnp.diag(known / jnp.sqrt(belief.noise)).astype(mean.dtype)
    likelihood = task.model.likelihood
    form, at = form_of(likelihood), broadened.pulled(likelihood, mean, variance)
    score = jax.grad(lambda eta: form.log_prob(y[None], eta[None])[0])(at)
    return score, form.root(y, at)


def _settled(task: Task, belief: Belief, seen: Seen, y: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The site at the posterior: score, as seen from the prior's mean, and root of the information, both weighted."""

    def at(mean: jax.Array, variance: jax.Array) -> tuple[jax.Array, jax.Array]:
        score, root = _site(task, belief, y, mean, variance)
        return weight * score, jnp.sqrt(weight) * root

    score, root = at(seen.eta, seen.variance)
    if task.learned_noise or isinstance(task.model.likelihood, likelihoods.Gaussian):
        return score, root  # the same wherever it is looked at
    for _ in range(SETTLING):
        information = root @ root.T
        both = jnp.concatenate([(seen.S @ score)[:, None], seen.S], axis=1)
        found = jnp.linalg.solve(jnp.eye(seen.eta.size, dtype=score.dtype) + seen.S @ information, both)
        step, variance = found[:, 0], jnp.maximum(jnp.diagonal(found[:, 1:]), 0.0)
        slope, root = at(seen.eta + step, variance)
        score = slope + root @ (root.T @ step)
    return score, root


def _noise(task: Task, belief: Belief) -> jax.Array | float:
    """Variance of normal noise, learned or known."""
    likelihood = task.model.likelihood
    return likelihood.std**2 if isinstance(likelihood, likelihoods.Gaussian) else belief.noise


def _noise_after(belief: Belief, seen: Seen, y: jax.Array, weight: jax.Array) -> jax.Array:
    """The noise's variance with what the row leaves unexplained: E(y - η)² after the row, averaged over outputs."""
    share = belief.noise / (belief.noise + seen.variance)
    left = (share * (y - seen.eta)) ** 2 + share * seen.variance
    fresh = jnp.nanmean(left)
    rate = jnp.minimum(0.5, weight * RESIDUALS / (belief.count + 10.0))
    return belief.noise + rate * (fresh - belief.noise)


def _learned(task: Task, given: Given, belief: Belief, row: tuple[jax.Array, ...]) -> tuple[Belief, jax.Array]:
    """The belief after a row, and the row's log predictive density before it."""
    x, y, weight = row
    belief = aged(belief, given) if task.ages else belief
    seen = _looked(task, belief, x)
    each = _scores(task, belief, seen, y)
    if task.robust:  # a residual far out counts less: the inverse multiquadric of a normal's distance
        spread = seen.variance + _noise(task, belief)
        weight = weight / (1.0 + jnp.nanmean((y - seen.eta) ** 2 / spread) / given.robust**2)
    after = absorbed(belief, seen, *_settled(task, belief, seen, y, weight))
    gain = each - each[0]
    rate = jnp.minimum(1.0, weight * RECENT / (belief.count + RECENT))
    gains = belief.gains + rate * (jnp.stack([gain, gain * gain]) - belief.gains)
    after = after._replace(count=belief.count + weight, gains=gains)
    if task.learned_noise:
        after = after._replace(noise=_noise_after(belief, seen, y, weight))
    return after, each[jnp.argmax(_fair(belief))]


def _fair(belief: Belief) -> jax.Array:
    """Gains of the candidates that are more than chance; the first has none and needs none."""
    first, second = belief.gains
    error = jnp.sqrt(jnp.maximum(second - first * first, 0.0) * RECENT / jnp.maximum(belief.count, 1.0))
    return jnp.where(first > error, first, 0.0).at[0].set(1e-12)


def best_of(belief: Belief) -> tuple[float, float]:
    """The width, and level of the noise, that have predicted best by more than a standard error; (1, 1) otherwise."""
    return candidates(belief.gains.shape[1] > len(WIDTHS))[int(jnp.argmax(_fair(belief)))]


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
