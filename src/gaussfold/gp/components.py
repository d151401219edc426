"""The parts of a sum: trend, season and rest, each with a band of its own.

If ``f = Σ f_k`` with a covariance each, then f is a mixture of independent processes, and a site on f is a site on all
of them (`affine`). So the posterior of every part comes from the prior that has the parts as its processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gaussfold.gp.affine import Affine, AffineMap
from gaussfold.gp.covariances import Covariance, Sum
from gaussfold.gp.priors import Prior
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess


class Component(NamedTuple):
    """One part of a sum of covariances at some inputs."""

    name: str
    """As its hyperparameters are called: ``covariance.0``."""
    covariance: Covariance
    mean: Array
    """(n,)"""
    std: Array
    """(n,)"""


def components(model: GaussianProcess, X: Array) -> list[Component]:
    """Posterior of every part of every process; a covariance that is no sum is one part."""
    owner, names, parts = [], [], []
    single = len(model.covariances) == 1
    for q, covariance in enumerate(model.covariances):
        mine = covariance.parts if isinstance(covariance, Sum) else (covariance,)
        for i, part in enumerate(mine):
            owner.append(q)
            parts.append(part)
            name = "covariance" if single else f"covariance[{q}]"
            names.append(f"{name}.{i}" if len(mine) > 1 else name)
    W = (np.eye(model.latents) if model.mixing is None else model.mixing)[:, owner]
    own = model.prior_
    link = own.link if isinstance(own, Affine) else AffineMap(None, None)
    pulled = AffineMap(W, link.shift).pulled(model.sites_)
    prior: Prior = model.plain_prior(model.X_, tuple(parts), own.Z)
    mean, cov = prior.predict(pulled, X)
    std = np.sqrt(np.maximum(np.diagonal(cov, axis1=1, axis2=2), 0.0))
    return [Component(n, c, mean[:, i], std[:, i]) for i, (n, c) in enumerate(zip(names, parts, strict=True))]
