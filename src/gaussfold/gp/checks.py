"""What a Gaussian process is given, checked at the door: errors name the argument, the value and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gaussfold.checks import one_of, whole
from gaussfold.gp.covariances import Covariance
from gaussfold.likelihoods import as_vector
from gaussfold.likelihoods import resolve as resolve_likelihood
from gaussfold.likelihoods.chained import VectorLikelihood
from gaussfold.protocols import Likelihood
from gaussfold.rules import Curvature, SiteRule, resolve_curvature, resolve_local
from gaussfold.types import Array, ArrayLike

STRUCTURES = ("dense", "sparse", "markov")


def likelihood_of(likelihood: Any) -> Likelihood | VectorLikelihood:
    """A likelihood of one latent or of several, by name or as an object."""
    return likelihood if isinstance(likelihood, VectorLikelihood) else resolve_likelihood(likelihood)


def rule_of(
    rule: str | SiteRule | None,
    curvature: str | Curvature | None,
    likelihood: Likelihood | VectorLikelihood,
    *,
    in_batches: bool,
) -> SiteRule:
    """A rule by name or as an object; None is the likelihood's own, or vi where a curvature or batches are given."""
    if rule is None:
        rule = "vi" if in_batches or curvature is not None else as_vector(likelihood).usual_rule
    return resolve_local(rule)


def curvature_of(
    curvature: str | Curvature | None, rule: SiteRule, likelihood: Likelihood | VectorLikelihood, *, in_batches: bool
) -> Curvature:
    """A policy by name or as an object; None chooses by the likelihood and by whether steps can be checked."""
    if curvature is not None:
        return resolve_curvature(curvature)
    if in_batches and not as_vector(likelihood).log_concave and "heuristic" in rule.curvatures:
        return resolve_curvature("heuristic")
    return resolve_curvature("exact")


def covariances_of(covariance: Any, latents: int) -> tuple[Covariance, ...]:
    """One covariance per latent; a single one serves each of them, with hyperparameters of its own."""
    if isinstance(covariance, Covariance):
        return (covariance,) * latents
    if not isinstance(covariance, Sequence) or not all(isinstance(c, Covariance) for c in covariance):
        msg = (
            f"covariance={covariance!r}: give a covariance such as gaussfold.gp.Matern32(1.0, lengthscale=2.0), "
            "or a list with one per latent"
        )
        raise ValueError(msg)
    if len(covariance) != latents:
        msg = f"covariance is a list of {len(covariance)}: the likelihood has {latents} latents; give one for each"
        raise ValueError(msg)
    return tuple(covariance)


def mixing_of(mixing: ArrayLike | None, latents: int) -> Array | None:
    """How processes (columns) are mixed into latents (rows); None: each latent is a process."""
    if mixing is None:
        return None
    W = _table("mixing", mixing, "give numbers (latents, processes)")
    if W.ndim != 2 or W.shape[0] != latents or W.shape[1] < 1 or not np.isfinite(W).all():
        shape = np.shape(mixing)
        msg = f"mixing has shape {shape}: the likelihood has {latents} latents; give finite numbers ({latents}, Q)"
        raise ValueError(msg)
    return W


def inputs(X: ArrayLike, name: str = "X", columns: int | None = None, *, may_be_empty: bool = False) -> Array:
    """Inputs as (N, d); a vector is one column."""
    array = _table(name, X, "encode categories as numbers first")
    if array.ndim != 2 or array.shape[1] == 0:
        msg = f"{name} has shape {np.shape(X)}; give inputs as (rows, columns), or one column as a vector"
        raise ValueError(msg)
    if len(array) == 0 and not may_be_empty:
        msg = f"{name} has no rows (shape {np.shape(X)}); at least one is needed"
        raise ValueError(msg)
    if columns is not None and array.shape[1] != columns:
        msg = f"{name} has {array.shape[1]} columns; the model was fitted on {columns}"
        raise ValueError(msg)
    bad = ~np.isfinite(array)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        msg = (
            f"{name}[{row}, {column}] = {float(array[row, column])!r}: inputs must be finite; drop the row, or put NaN "
            "into Y to predict there"
        )
        raise ValueError(msg)
    return np.ascontiguousarray(array)


def labels(Y: ArrayLike, rows: int, likelihood: Likelihood | VectorLikelihood, name: str = "Y") -> Array:
    """Labels as (N, P), NaN where missing, all of them possible under the likelihood."""
    model = as_vector(likelihood)
    array = _table(name, Y, f"{likelihood} labels must be numbers")
    if array.shape != (rows, model.outputs):
        msg = (
            f"{name} has shape {np.shape(Y)}: {rows} rows of X and {likelihood} with {model.outputs} output(s) need "
            f"({rows}, {model.outputs})"
        )
        raise ValueError(msg)
    if isinstance(likelihood, VectorLikelihood):
        likelihood.check_labels(array, name)
    else:
        likelihood.check_labels(array[:, 0], name)
    return np.ascontiguousarray(array)


def _table(name: str, values: ArrayLike, remedy: str) -> Array:
    """Numbers in rows and columns; a vector is one column."""
    if np.iscomplexobj(values):
        msg = f"{name} is not numeric (complex numbers); {remedy}"
        raise ValueError(msg)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"{name} is not numeric ({error}); {remedy}"
        raise ValueError(msg) from error
    return array[:, None] if array.ndim == 1 else array


def structure_of(structure: str) -> str:
    """One of the three."""
    return one_of("structure", structure, STRUCTURES)


def batch_size_of(batch_size: int | None, structure: str, *, plain: bool) -> int | None:
    """Rows per batch, for a structure that learns from such; ``plain``: neither a mean nor mixed latents."""
    if batch_size is None:
        return None
    if structure != "sparse":
        msg = f"batch_size={batch_size!r}: only structure='sparse' learns from batches; leave it None"
        raise ValueError(msg)
    if not plain:
        msg = f"batch_size={batch_size!r}: batches know neither a mean nor mixed latents; leave batch_size None"
        raise ValueError(msg)
    return whole("batch_size", batch_size)


def streams(structure: str, batch_size: int | None, *, in_space: bool) -> None:
    """Refuse a model that cannot take rows in without a fit."""
    if structure == "markov" and in_space:
        msg = "partial_fit with SpaceTime and structure='markov' is not there; call fit, or use structure='sparse'"
        raise ValueError(msg)
    if structure == "dense" or batch_size is not None:
        msg = (
            f"structure={structure!r}, batch_size={batch_size!r}: partial_fit needs structure='markov', or 'sparse' "
            "with batch_size=None; call fit instead"
        )
        raise ValueError(msg)


MOST_PLACES = 300
"""Of a process in space and time, where nobody has said how many."""


def inducing_of(inducing: Any, X: Array, rng: np.random.Generator) -> Array:
    """Inducing inputs: given, or so many drawn from X, spread out (k-means++ seeding)."""
    if inducing is None:
        inducing = min(100, len(X))
    if np.ndim(inducing) == 0:
        count = whole(
            "inducing", inducing, owner="the number of inducing inputs", remedy="or give the inputs as an array"
        )
        return _spread(X, count, rng)
    Z = inputs(inducing, "inducing", may_be_empty=True)
    if len(Z) < 1:
        msg = "inducing has no rows: at least one inducing input is needed; give an array (M, columns) or a number"
        raise ValueError(msg)
    if Z.shape[1] != X.shape[1]:
        msg = f"inducing has {Z.shape[1]} columns and X has {X.shape[1]}; they live in the same space"
        raise ValueError(msg)
    return Z


def places_of(inducing: Any, where: Array) -> Array | None:
    """Places of a process in space and time: given, so many of those that the data have, or (None) all of them.

    Drawn with a seed of their own, so that a model set to other hyperparameters, or loaded, has the same.
    """
    if inducing is not None:
        return inducing_of(inducing, where, np.random.default_rng(0))
    count = len(np.unique(where, axis=0))
    if count > MOST_PLACES:
        msg = (
            f"X has {count} different places, and every one of more than {MOST_PLACES} makes a large state; "
            "give inducing=50, say, or the places as an array, or use structure='sparse'"
        )
        raise ValueError(msg)
    return None


def _spread(X: Array, count: int, rng: np.random.Generator) -> Array:
    """Rows of X, each drawn with probability proportional to its squared distance from those already drawn."""
    distinct = np.unique(X, axis=0)
    if count >= len(distinct):
        return distinct
    scale = np.std(distinct, axis=0)
    scaled = distinct / np.where(scale > 0.0, scale, 1.0)
    chosen = [int(rng.integers(len(distinct)))]
    nearest = ((scaled - scaled[chosen[0]]) ** 2).sum(axis=1)
    for _ in range(count - 1):
        chosen.append(int(rng.choice(len(distinct), p=nearest / nearest.sum())))
        nearest = np.minimum(nearest, ((scaled - scaled[chosen[-1]]) ** 2).sum(axis=1))
    return np.asarray(distinct[np.sort(chosen)])
