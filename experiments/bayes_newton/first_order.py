"""First-order variational inference: Adam on the sites' means and covariances (Opper and Archambeau, 2009)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gaussfold import rules
from gaussfold.types import Array, Sites

STEP = 1e-5


class FirstOrder:
    """Adam on the variational free energy, for the same posterior family as the natural-gradient methods.

    With the target sites t* of the rule vi, the gradient in the sites' natural parameters is the Fisher matrix times
    (t - t*): a change (δλ, δΛ) of the sites changes the means by C(δλ - δΛ m), which is linear in λ (one more
    posterior), and the marginal covariances by -CδΛC (one difference of posteriors). Parameters are the site means and
    the Cholesky factors of the site covariances, diagonals on the log scale.
    """

    def __init__(self, model: Any, X: Any, Y: Any, rate: float = 0.1) -> None:
        self.model, self.rate = model, rate
        model.fit(X, Y, iterations=0)
        rows, latents = model.sites_.shift.shape
        self.mean = np.zeros((rows, latents))
        self.root = np.broadcast_to(np.log(10.0) * np.eye(latents), (rows, latents, latents)).copy()
        self.first = [np.zeros_like(self.mean), np.zeros_like(self.root)]
        self.second = [np.zeros_like(self.mean), np.zeros_like(self.root)]
        self.count = 0
        self._put()

    def step(self) -> None:
        """One step of Adam."""
        model = self.model
        now, sites = model.marginals_, model.sites_
        target = rules.update_sites(
            rules.SiteRecipe(rules.VI(), rules.Exact(), model.likelihood, model.cubature),
            model.Y_,
            rules.Gaussians(now.mean, now.cov),
            sites,
        ).sites
        away = Sites(sites.precision - target.precision, sites.shift - target.shift)
        push = away.shift - (away.precision @ now.mean[:, :, None])[:, :, 0]
        moved = model.prior_.update(Sites(sites.precision, push)).mean
        scale = STEP / max(float(np.abs(away.precision).max()), 1e-12)
        up, down = (
            model.prior_.update(Sites(sites.precision + s * scale * away.precision, sites.shift)).cov
            for s in (1.0, -1.0)
        )
        spread = (up - down) / (2.0 * scale)
        cross = moved[:, :, None] * now.mean[:, None, :]
        by_precision = -0.5 * (spread + cross + np.swapaxes(cross, 1, 2))
        self._adam(*self._chain(moved, by_precision))
        self._put()

    def _chain(self, by_shift: Array, by_precision: Array) -> tuple[Array, Array]:
        """From natural parameters to site mean and factor: λ = S⁻¹μ, Λ = S⁻¹, S = R R'."""
        R = self._factor()
        precision = self.model.sites_.precision
        by_mean = (precision @ by_shift[:, :, None])[:, :, 0]
        outer = by_shift[:, :, None] * self.mean[:, None, :]
        inner = by_precision + 0.5 * (outer + np.swapaxes(outer, 1, 2))
        by_root = np.tril(-2.0 * precision @ inner @ precision @ R)
        diagonal = np.arange(R.shape[-1])
        by_root[:, diagonal, diagonal] *= R[:, diagonal, diagonal]
        return by_mean, by_root

    def _adam(self, *gradients: Array) -> None:
        self.count += 1
        for i, (value, gradient) in enumerate(zip((self.mean, self.root), gradients, strict=True)):
            self.first[i] = 0.9 * self.first[i] + 0.1 * gradient
            self.second[i] = 0.999 * self.second[i] + 0.001 * gradient**2
            first, second = self.first[i] / (1.0 - 0.9**self.count), self.second[i] / (1.0 - 0.999**self.count)
            value -= self.rate * first / (np.sqrt(second) + 1e-8)

    def _factor(self) -> Array:
        R = np.tril(self.root, -1)
        diagonal = np.arange(R.shape[-1])
        R[:, diagonal, diagonal] = np.exp(self.root[:, diagonal, diagonal])
        return R

    def _put(self) -> None:
        turn = np.linalg.inv(self._factor())
        precision = np.swapaxes(turn, 1, 2) @ turn
        seen = ~np.isnan(self.model.Y_).all(axis=1)[:, None]
        shift = (precision @ self.mean[:, :, None])[:, :, 0]
        self.model.sites_ = Sites(np.where(seen[..., None], precision, 0.0), np.where(seen, shift, 0.0))
        self.model.marginals_ = self.model.prior_.update(self.model.sites_)
