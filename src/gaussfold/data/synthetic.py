"""The synthetic classification problem of the R-VGA paper (its section 6), and seeds that do not collide."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gaussfold.checks import not_negative, one_of, refuse, whole
from gaussfold.types import Array

SCALINGS = ("trace", "sample", "squares", "none")


@dataclass(frozen=True)
class TwoGaussians:
    """Two Gaussian classes of mean ``±mean`` and covariance ``cov``, and a sample of them.

    Attributes
    ----------
    X : (n, dim) array
        Inputs, in the order in which a stream sees them.
    y : (n,) array
        Labels 0.0 and 1.0; the class 1 is the one around ``+mean``.
    mean : (dim,) array
        Mean of class 1.
    cov : (dim, dim) array
        Covariance of either class.
    theta : (dim,) array
        The logistic regression that is true here: ``P(y = 1 | x) = σ(x'θ)``, ``θ = 2 cov⁻¹ mean``.
    """

    X: Array
    y: Array
    mean: Array
    cov: Array
    theta: Array


@dataclass(frozen=True)
class Streams:
    """Independent generators for the three uses that must never share a seed.

    With one seed for all, the evaluation's samples repeat the normals that made the data: the KL curves
    of the L-RVGA paper are off by a factor of two for it.
    """

    data: np.random.Generator
    init: np.random.Generator
    evaluation: np.random.Generator


def streams(*key: int) -> Streams:
    """Return the three independent generators that belong to a key (one or more whole numbers ≥ 0).

    >>> a, b = streams(7), streams(7)
    >>> bool(a.data.normal() == b.data.normal()), bool(a.init.normal() == a.evaluation.normal())
    (True, False)
    """
    if not key or any(part < 0 for part in key):
        refuse("key", key, "one whole number >= 0, or more,", "give them, such as streams(3)")
    # The length goes in too: NumPy pads entropy with zeros, so that (4,) and (4, 0) would be the same seed.
    children = np.random.SeedSequence([len(key), *key]).spawn(3)
    return Streams(*(np.random.default_rng(child) for child in children))


def two_gaussians(
    n: int,
    dim: int,
    *,
    separation: float,
    rng: np.random.Generator,
    exponent: float = 0.0,
    scaling: str = "trace",
) -> TwoGaussians:
    r"""Draw ``n`` inputs, half from each of two Gaussians, shuffled.

    The classes are ``N(±m, C)`` with ``‖2m‖ = separation``, ``m`` uniform on its sphere, and (rvga (91))

    ``C = a M' diag(1, 1/2^c, ..., 1/d^c) M``, ``c = exponent``, ``M`` a uniform rotation,

    where ``scaling`` fixes the factor a:

    - ``"trace"``: ``a = 1/Σλ``, so that ``E‖x - m‖² = 1`` in any dimension, the aim of the paper's text;
    - ``"sample"``: every class is divided by the norm of its own vector of sample standard deviations,
      the paper's formula to the letter (``cov`` and ``theta`` stay those of ``"trace"``, its limit);
    - ``"squares"``: ``a = 1/Σλ²``, what the authors' program does. The same for c = 0; for c = 1 and d = 100
      inputs get ``E‖x - m‖² = 3.17`` instead of 1. The published figures were drawn with it;
    - ``"none"``: ``a = 1``, (91) as it stands.

    The draws do not depend on ``separation``, ``exponent`` or ``scaling``: the same generator state gives the
    same classes moved apart or stretched.

    Parameters
    ----------
    n : int
        Number of inputs, at least 2; an odd one goes to class 0.
    dim : int
        Dimension of an input, at least 1.
    separation : float
        Distance between the two means (the paper's s), ≥ 0.
    rng : numpy.random.Generator
        Where the randomness comes from; `streams` gives one that nothing else uses.
    exponent : float
        The paper's c ≥ 0: 0 is isotropic, larger is worse conditioned.
    scaling : {"trace", "sample", "squares", "none"}
        Normalisation of the covariance, see above.

    Returns
    -------
    TwoGaussians

    Examples
    --------
    >>> problem = two_gaussians(200, 3, separation=2.0, exponent=1.0, rng=streams(1).data)
    >>> problem.X.shape, float(problem.y.mean()), round(float(np.trace(problem.cov)), 12)
    ((200, 3), 0.5, 1.0)
    """
    _check(n, dim, separation, exponent, scaling, rng)
    rotation = _rotation(dim, rng)
    direction = rng.normal(size=dim)
    y = rng.permutation(np.concatenate([np.zeros(n - n // 2), np.ones(n // 2)]))
    noise = rng.normal(size=(n, dim))

    eigenvalues = np.arange(1.0, dim + 1.0) ** -exponent
    if scaling in ("trace", "sample"):
        eigenvalues /= eigenvalues.sum()
    elif scaling == "squares":
        eigenvalues /= np.sum(eigenvalues**2)
    mean = (separation / 2.0) * direction / math.sqrt(direction @ direction)
    noise = (noise * np.sqrt(eigenvalues)) @ rotation
    if scaling == "sample":
        for label in (0.0, 1.0):
            rows = y == label
            noise[rows] /= math.sqrt(np.sum(np.var(noise[rows], axis=0)))
    X = noise + np.where(y == 1.0, 1.0, -1.0)[:, None] * mean
    cov = (rotation.T * eigenvalues) @ rotation
    theta = 2.0 * ((mean @ rotation.T) / eigenvalues) @ rotation
    return TwoGaussians(X=X, y=y, mean=mean, cov=cov, theta=theta)


def _rotation(dim: int, rng: np.random.Generator) -> Array:
    """Draw an orthogonal matrix, uniformly: QR of normals, with the signs that make the factor unique."""
    q, r = np.linalg.qr(rng.normal(size=(dim, dim)))
    return np.asarray(q * np.sign(np.diag(r)))


def _check(n: int, dim: int, separation: float, exponent: float, scaling: str, rng: object) -> None:
    if not isinstance(rng, np.random.Generator):
        refuse("rng", rng, "a numpy.random.Generator", "give one, such as streams(0).data")
    for name, count, least in (("n", n, 2), ("dim", dim, 1)):
        whole(name, count, least)
    for name, value in (("separation", separation), ("exponent", exponent)):
        not_negative(name, value)
    one_of("scaling", scaling, SCALINGS)
    if scaling == "sample" and n < 4:
        msg = f"n={n}: scaling='sample' needs two inputs per class; give n >= 4"
        raise ValueError(msg)
