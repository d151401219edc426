"""First-order variational inference: Adam on the sites' means and covariances (Opper and Archambeau, 2009).

What the natural-gradient steps of rule "vi" are measured against: the same family of posteriors and the same energy
(16), by plain gradients. It needs hundreds of steps where they need ten, and a step costs five posteriors instead of
one; where likelihoods are far from log-concave it can end in another valley.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from gaussfold.checks import between, whole
from gaussfold.linalg.small import applied, inverse
from gaussfold.rules import VI, Exact, Gaussians, update_sites
from gaussfold.rules.site_updates import missing_rows
from gaussfold.types import Array, ArrayLike, Sites

if TYPE_CHECKING:
    from gaussfold.gp.fitting import Fitting

STEP = 1e-5
"""Of the difference that turns with the posterior covariances, relative to the largest change of a precision."""
WIDE = 10.0
"""Standard deviation of every site before the first step."""
FIRST_MEMORY, SECOND_MEMORY, FLOOR = 0.9, 0.999, 1e-8


class FirstOrderVI:
    """Adam on the variational free energy of a Gaussian process, whose sites and marginals it moves.

    With the target sites t* of the rule vi, the gradient in the sites' natural parameters is the Fisher matrix times
    (t - t*): a change (δλ, δΛ) of the sites changes the means by C(δλ - δΛ m), which is linear in λ (one more
    posterior), and the marginal covariances by -CδΛC (one difference of posteriors). Parameters are the site means and
    the Cholesky factors of the site covariances, diagonals on the log scale.

    Parameters
    ----------
    model : GaussianProcess
        Its prior and likelihood are used, its rule and curvature are not; ``batch_size`` must be None.
    X, Y, offset, sample_weight : arrays
        As `GaussianProcess.fit` takes them.
    rate : float, default=0.1
        Of Adam.

    Examples
    --------
    >>> from gaussfold.gp import GaussianProcess, Matern32
    >>> x = np.linspace(0.0, 6.0, 20)
    >>> y = (np.sin(x) > 0.0).astype(float)
    >>> model = GaussianProcess(Matern32(2.0, 1.0), "bernoulli", structure="markov")
    >>> slow = FirstOrderVI(model, x, y).run(500)
    >>> best = GaussianProcess(Matern32(2.0, 1.0), "bernoulli", structure="markov").fit(x, y)
    >>> 0.0 <= slow.model.energy() - best.energy() < 0.01
    True
    """

    def __init__(
        self,
        model: Fitting,
        X: ArrayLike,
        Y: ArrayLike,
        rate: float = 0.1,
        *,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        if model.batch_size is not None:
            msg = f"batch_size={model.batch_size!r}: FirstOrderVI moves the sites of all rows; use batch_size=None"
            raise ValueError(msg)
        self.rate = between("rate", rate, 0, 1, "(]")
        self.model = model
        model.fit(X, Y, offset=offset, sample_weight=sample_weight, iterations=0)
        rows, latents = model.sites_.shift.shape
        weights = model.extras_.weights
        self._seen = np.asarray(~missing_rows(model.Y_))
        if weights is not None:
            self._seen = self._seen & (weights > 0.0)
        self._mean = np.zeros((rows, latents))
        self._root = np.broadcast_to(np.log(WIDE) * np.eye(latents), (rows, latents, latents)).copy()
        self._first = [np.zeros_like(self._mean), np.zeros_like(self._root)]
        self._second = [np.zeros_like(self._mean), np.zeros_like(self._root)]
        self._count = 0
        self._put()

    def run(self, steps: int) -> Self:
        """Take so many steps."""
        for _ in range(whole("steps", steps)):
            self.step()
        return self

    def step(self) -> None:
        """One step of Adam."""
        model = self.model
        now, sites = model.marginals_, model.sites_
        recipe = model.recipe._replace(rule=VI(), curvature=Exact())
        target = update_sites(recipe, model.labels, Gaussians(now.mean, now.cov), sites).sites
        away = Sites(sites.precision - target.precision, sites.shift - target.shift)
        moved = model.prior_.update(Sites(sites.precision, away.shift - applied(away.precision, now.mean))).mean
        moved = (
            moved - model.prior_.update(Sites(sites.precision, np.zeros_like(sites.shift))).mean
        )  # of a mean function
        scale = STEP / max(float(np.abs(away.precision).max()), 1e-12)
        up, down = (
            model.prior_.update(Sites(sites.precision + s * scale * away.precision, sites.shift)).cov
            for s in (1.0, -1.0)
        )
        cross = moved[:, :, None] * now.mean[:, None, :]
        by_precision = -0.5 * ((up - down) / (2.0 * scale) + cross + np.swapaxes(cross, 1, 2))
        self._adam(*self._chain(moved, by_precision))
        self._put()

    def _chain(self, by_shift: Array, by_precision: Array) -> tuple[Array, Array]:
        """From natural parameters to site mean and factor: λ = S⁻¹μ, Λ = S⁻¹, S = R R'."""
        R, precision = self._factor(), self.model.sites_.precision
        outer = by_shift[:, :, None] * self._mean[:, None, :]
        inner = by_precision + 0.5 * (outer + np.swapaxes(outer, 1, 2))
        by_root = np.tril(-2.0 * precision @ inner @ precision @ R)
        diagonal = np.arange(R.shape[-1])
        by_root[:, diagonal, diagonal] *= R[:, diagonal, diagonal]
        return applied(precision, by_shift), by_root

    def _adam(self, *gradients: Array) -> None:
        self._count += 1
        for i, (value, gradient) in enumerate(zip((self._mean, self._root), gradients, strict=True)):
            self._first[i] = FIRST_MEMORY * self._first[i] + (1.0 - FIRST_MEMORY) * gradient
            self._second[i] = SECOND_MEMORY * self._second[i] + (1.0 - SECOND_MEMORY) * gradient**2
            first = self._first[i] / (1.0 - FIRST_MEMORY**self._count)
            second = self._second[i] / (1.0 - SECOND_MEMORY**self._count)
            value -= self.rate * first / (np.sqrt(second) + FLOOR)

    def _factor(self) -> Array:
        R = np.tril(self._root, -1)
        diagonal = np.arange(R.shape[-1])
        R[:, diagonal, diagonal] = np.exp(self._root[:, diagonal, diagonal])
        return R

    def _put(self) -> None:
        """The parameters as sites, and their posterior; rows without an output say nothing."""
        turn = inverse(self._factor())
        precision = np.swapaxes(turn, 1, 2) @ turn
        seen = self._seen[:, None]
        shift = applied(precision, self._mean)
        sites = Sites(np.where(seen[..., None], precision, 0.0), np.where(seen, shift, 0.0))
        self.model.marginals_ = self.model.prior_.update(sites)
        self.model.sites_ = sites
