"""The hyperparameters of a model as names and numbers: those of every covariance, then the likelihood's."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from gaussfold.gp.covariances import Covariance
from gaussfold.likelihoods.chained import VectorLikelihood
from gaussfold.protocols import Likelihood
from gaussfold.types import Array

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

AnyLikelihood = TypeVar("AnyLikelihood", Likelihood, VectorLikelihood, Likelihood | VectorLikelihood)


def prefixes(covariances: tuple[Covariance, ...]) -> list[str]:
    """``covariance.`` for one latent, ``covariance[d].`` for several."""
    return ["covariance."] if len(covariances) == 1 else [f"covariance[{d}]." for d in range(len(covariances))]


def likelihood_parameters(likelihood: object) -> dict[str, float]:
    """Fields of the likelihood that are positive numbers, such as a noise's standard deviation."""
    if not dataclasses.is_dataclass(likelihood):
        return {}
    values = {field.name: vars(likelihood)[field.name] for field in dataclasses.fields(likelihood) if field.init}
    return {name: value for name, value in values.items() if type(value) is float and 0.0 < value < float("inf")}


def parameters(covariances: tuple[Covariance, ...], likelihood: object) -> dict[str, float]:
    """All of them, in the order of every gradient."""
    found = {
        prefix + name: value
        for prefix, covariance in zip(prefixes(covariances), covariances, strict=True)
        for name, value in covariance.parameters().items()
    }
    return found | {f"likelihood.{name}": value for name, value in likelihood_parameters(likelihood).items()}


def ranges_of(covariances: tuple[Covariance, ...], names: Sequence[str], X: Array) -> Array:
    """How far the inputs reach in the columns that each hyperparameter of a covariance measures, their mean."""
    owners = dict(zip(prefixes(covariances), covariances, strict=True))
    found = []
    for name in names:
        prefix = next(prefix for prefix in owners if name.startswith(prefix))
        ranges = np.ptp(owners[prefix].seen_by(name.removeprefix(prefix), X), axis=0)
        found.append(float(np.where(ranges > 0.0, ranges, 1.0).mean()))
    return np.array(found)


def replaced(
    covariances: tuple[Covariance, ...], likelihood: AnyLikelihood, values: Mapping[str, float]
) -> tuple[tuple[Covariance, ...], AnyLikelihood]:
    """Covariances and likelihood with these hyperparameters, by name; each is one of `parameters`."""
    changed = tuple(
        covariance.replace({k.removeprefix(prefix): float(v) for k, v in values.items() if k.startswith(prefix)})
        for prefix, covariance in zip(prefixes(covariances), covariances, strict=True)
    )
    mine = {k.removeprefix("likelihood."): float(v) for k, v in values.items() if k.startswith("likelihood.")}
    if not mine:
        return changed, likelihood
    parametrised = cast("DataclassInstance", likelihood)  # only such have parameters
    return changed, cast("AnyLikelihood", dataclasses.replace(parametrised, **mine))
