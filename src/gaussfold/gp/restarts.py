"""Where learning starts: at what was given, and at what the data suggest, whichever explains a subset of them better.

Energies have several valleys (all noise, all signal, half the period), and which one a search ends in is decided where
it starts. Length scales are tried at several shares of each column's range, variances and noise at the labels' own
scale, periods at the peak of the periodogram; a few iterations on at most SCREEN rows tell the starts apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.signal import lombscargle

from gaussfold.gp import exact, hyper
from gaussfold.gp.covariances import Covariance
from gaussfold.gp.means import Means
from gaussfold.likelihoods import Gaussian
from gaussfold.likelihoods.chained import VectorLikelihood
from gaussfold.likelihoods.gaussian_noise import GaussianNoise
from gaussfold.protocols import Likelihood
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess

SCREEN = 300
SHARES = (0.03, 0.1, 0.3, 1.0)
"""Of an input column's range, for length scales."""
FEW_ROWS = 1000
"""Up to so many rows a second search costs little."""
ITERATIONS = 30


def chosen(
    model: GaussianProcess, names: Sequence[str], restarts: int | None, means: Means | None = None
) -> list[dict[str, float]]:
    """Values of these hyperparameters to start from, the most promising first: one more than restarts.

    If others start better from the mean functions ``means``, the model is given these.
    """
    given = {name: model.parameters()[name] for name in names}
    if restarts == 0 or not names:
        return [given]
    if restarts is None:
        restarts = 1 if len(model.X_) <= FEW_ROWS else 0
    rows = _some(len(model.X_), SCREEN)
    candidates, energies = _screen(model, given, rows)
    if means is not None:
        before, model.means = model.means, means
        others, theirs = _screen(model, given, rows)
        if min(theirs) < min(energies):
            candidates, energies = others, theirs
        else:
            model.means = before
    order = np.argsort(energies, kind="stable")
    best = [candidates[i] for i in order[: restarts + 1] if np.isfinite(energies[i])]
    return best or [given]


def _screen(
    model: GaussianProcess, given: dict[str, float], rows: np.ndarray
) -> tuple[list[dict[str, float]], list[float]]:
    """Starts, and the energy that each has on these rows."""
    candidates = [given, *suggested(model, given, rows)]
    return candidates, [screened(model, values, rows) for values in candidates]


def _some(count: int, most: int) -> np.ndarray:
    """Row numbers, all or as many as that, drawn the same way each time."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False))


def screened(model: GaussianProcess, values: Mapping[str, float], rows: np.ndarray) -> float:
    """Energy per row after a few iterations on these rows; infinite where there is none."""
    covariances, likelihood = hyper.replaced(model.covariances, model.likelihood, values)
    try:
        if isinstance(likelihood, Gaussian) and exact.is_exact(model):
            y = model.Y_[rows, 0]
            seen = ~np.isnan(y)
            return exact.evidence(covariances[0], likelihood.std, model.X_[rows][seen], y[seen])[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            blank = twin(model, covariances, likelihood, iterations=ITERATIONS)
            few = model.extras_.of(rows)
            blank.fit(model.X_[rows], model.Y_[rows], offset=few.offset, sample_weight=few.weights)
            return blank.energy()
    except (ValueError, np.linalg.LinAlgError):
        return np.inf


def twin(
    model: GaussianProcess,
    covariances: Sequence[Covariance],
    likelihood: Likelihood | VectorLikelihood,
    *,
    iterations: int | None = None,
) -> GaussianProcess:
    """A model like this one that has seen nothing; inducing inputs where they are now."""
    Z = model.prior_.Z if model.is_fitted else None
    return type(model)(
        tuple(covariances), likelihood, model.rule, model.curvature, model.structure,
        inducing=model.inducing if Z is None else Z, damping=model.damping, tol=model.tol, cubature=model.cubature,
        max_iter=model.max_iter if iterations is None else iterations, verbose=False, random_state=0, mean=model.means,
        mixing=model.mixing,
    )  # fmt: skip


def suggested(model: GaussianProcess, given: Mapping[str, float], rows: np.ndarray) -> list[dict[str, float]]:
    """Starts from the data's own scales; what is no length, variance, noise, period or frequency stays as given."""
    X, Y = model.X_[rows], _around_zero(model, given, rows)
    circles = {name.rpartition(".")[0] for name in given if name.endswith(".period")}
    values = dict(given) | _of_labels(given, Y, model.likelihood) | _of_waves(given, circles, X, Y)
    lengths = [n for n in given if "lengthscale" in n.rpartition(".")[2] and n.rpartition(".")[0] not in circles]
    reach = hyper.ranges_of(model.covariances, lengths, X)
    shares = SHARES if lengths else (1.0,)
    return [values | dict(zip(lengths, share * reach, strict=True)) for share in shares]


def _around_zero(model: GaussianProcess, given: Mapping[str, float], rows: np.ndarray) -> Array:
    """Labels, without what mean functions and offsets say of them where they lie around the first latent."""
    Y: Array = model.Y_[rows].copy()
    if _is_located(given, model.likelihood):
        known = model.mean_at(model.X_[rows])[:, 0]
        Y[:, 0] -= known if model.extras_.offset is None else known + model.extras_.offset[rows, 0]
    return Y


def _of_waves(given: Mapping[str, float], circles: set[str], X: Array, Y: Array) -> dict[str, float]:
    """Periods of these covariances and frequencies of waves, where the labels have one."""
    waves = [name for name in given if name.endswith(".frequency")]
    period = _period(X, Y) if circles or waves else None
    if period is None:
        return {}
    return {f"{owner}.period": period for owner in circles} | dict.fromkeys(waves, 2.0 * np.pi / period)


def _of_labels(given: Mapping[str, float], Y: Array, likelihood: object) -> dict[str, float]:
    """Variances and noise on the labels' own scale, where that is the latents' scale too; else variances of one.

    A latent of unit variance is what links are made for: odds, rates and scales within a factor of ten.
    """
    y = Y[:, 0][~np.isnan(Y[:, 0])]
    if not _is_located(given, likelihood):
        return {name: 1.0 for name in given if name.endswith("variance")}
    spread = float(y.std()) if y.size > 1 and y.std() > 0.0 else 1.0
    variances = {name: spread**2 for name in given if name.endswith("variance")}
    return variances | {name: 0.3 * spread for name in ("likelihood.std", "likelihood.scale") if name in given}


def _is_located(given: Mapping[str, float], likelihood: object) -> bool:
    """Whether labels lie around the first latent, with a noise of their own scale."""
    return isinstance(likelihood, GaussianNoise) or "likelihood.std" in given or "likelihood.scale" in given


def _period(X: Array, Y: Array) -> float | None:
    """Where the periodogram of the labels peaks, for one input column; None if there is nothing to see."""
    seen = ~np.isnan(Y[:, 0])
    x, y = X[seen, 0], Y[seen, 0]
    if X.shape[1] != 1 or x.size < 8 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return None
    frequencies = np.arange(2.0, x.size / 2.0, 0.25) / np.ptp(x)
    line = np.polynomial.Polynomial.fit(x, y, 1)
    power = lombscargle(x - x[0], y - line(x), 2.0 * np.pi * frequencies)
    return float(1.0 / frequencies[int(np.argmax(power))])
