"""What is learned besides positive hyperparameters: weights of mean functions, and how processes are mixed.

Weights are learned in coordinates in which the features are orthonormal at the data, times √N: a slope per day and an
intercept at 1970 would otherwise be a valley too narrow for any search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gaussfold.gp.affine import Affine
from gaussfold.gp.means import Means
from gaussfold.gp.priors import Prior
from gaussfold.gp.starts import mode_sites
from gaussfold.linalg.small import applied, inverse
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess


def names(model: GaussianProcess) -> list[str]:
    """What ``fixed`` may name: ``mean[d]`` (``mean`` for one latent) and ``mixing``."""
    found = [] if model.means is None else [_name(model, d) for d, mean in enumerate(model.means) if mean is not None]
    return found if model.mixing is None else [*found, "mixing"]


def _name(model: GaussianProcess, d: int) -> str:
    return "mean" if model.latents == 1 else f"mean[{d}]"


class LinearParts:
    """The free ones of a model as one vector."""

    def __init__(self, model: GaussianProcess, fixed: Sequence[str]) -> None:
        self._model = model
        self._means: list[tuple[int, Array, Array]] = []
        for d, mean in enumerate(model.means or ()):
            if mean is not None and _name(model, d) not in fixed:
                features = mean.features(model.X_)
                self._means.append((d, features, _turn(features)))
        self._mixes = model.mixing is not None and "mixing" not in fixed

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be learned."""
        return not self._means and not self._mixes

    def get(self) -> Array:
        """Where the model is."""
        model = self._model
        parts: list[Array] = [np.empty(0)]
        for d, features, turn in self._means:
            assert model.means is not None
            mean = model.means[d]
            weights = np.zeros(features.shape[1]) if mean is None or not mean.weights else np.asarray(mean.weights)
            parts.append(turn @ weights)
        if self._mixes and model.mixing is not None:
            parts.append(model.mixing.ravel())
        return np.concatenate(parts)

    def suggested(self) -> Means | None:
        """The means that come closest to every row's own mode, which counts as much as it says; None if none is free.

        From zero weights a trend looks like a process of enormous variance, and searches end in that valley.
        """
        model = self._model
        if not self._means or model.means is None:
            return None
        sites = mode_sites(model.recipe, model.prior_moments(model.X_, model.extras_.offset), model.labels, 0.0)
        if sites is None:
            return None
        says = np.diagonal(sites.precision, axis1=1, axis2=2)
        least = 1e-9 * np.maximum(says.max(axis=1), np.finfo(float).tiny ** 0.5)
        modes = applied(inverse(sites.precision + least[:, None, None] * np.eye(model.latents)), sites.shift)
        modes -= 0.0 if model.extras_.offset is None else model.extras_.offset
        found = list(model.means)
        for d, features, _ in self._means:
            root, mean = np.sqrt(says[:, d]), found[d]
            weights = np.linalg.lstsq(root[:, None] * features, root * modes[:, d], rcond=None)[0]
            found[d] = mean and mean.having(weights.tolist())
        return tuple(found)

    def set(self, x: Array, prior: Prior) -> Prior:
        """Bring the model there; the prior around the new mean."""
        model = self._model
        if self.is_empty or not isinstance(prior, Affine):
            return prior
        at = 0
        for d, features, turn in self._means:
            assert model.means is not None
            size = features.shape[1]
            weights = np.linalg.lstsq(turn, x[at : at + size], rcond=None)[0]
            model.means = tuple(m and m.having(weights.tolist()) if i == d else m for i, m in enumerate(model.means))
            at += size
        if self._mixes and model.mixing is not None:
            model.mixing = x[at:].reshape(model.mixing.shape)
        link = model.map_at(model.X_, model.extras_.offset)
        assert link is not None
        return prior.having(link, model.mean_at)

    def gradient(self) -> Array:
        """Of the energy at settled sites."""
        model = self._model
        prior = model.prior_
        if self.is_empty or not isinstance(prior, Affine):
            return np.empty(0)
        slope = prior.shift_gradient(model.sites_) if self._means else None
        parts: list[Array] = [np.empty(0)]
        for d, features, turn in self._means:
            assert slope is not None
            parts.append(np.asarray(np.linalg.lstsq(turn.T, features.T @ slope[:, d], rcond=None)[0]))
        if self._mixes:
            parts.append(prior.mixing_gradient(model.sites_).ravel())
        return np.concatenate(parts)


def _turn(features: Array) -> Array:
    """From weights to weights of orthonormal features: R/√N of their QR decomposition."""
    R = np.linalg.qr(features, mode="r") / np.sqrt(len(features))
    if R.shape[0] < R.shape[1]:  # fewer rows than features: what is not told stays where it is
        R = np.vstack([R, np.zeros((R.shape[1] - R.shape[0], R.shape[1]))])
    return np.asarray(R)
