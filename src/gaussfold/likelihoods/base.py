"""What all likelihoods of one latent share: label checks, and the way to their expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gaussfold import registry
from gaussfold.engine.seam import over_arrays
from gaussfold.expectations import gauss_hermite
from gaussfold.expectations.kinks import mended
from gaussfold.expectations.tilted import tilted
from gaussfold.likelihoods.libraries import numpy_floats
from gaussfold.types import Array, ArrayLike, Moments, Record

if TYPE_CHECKING:
    from gaussfold.engine.arrays.over_arrays import RowFunctions


class ScalarLikelihood:
    """A likelihood p(y | f) of one latent f per label; the parent of every family here and of your own.

    A subclass gives :meth:`log_prob` and :meth:`derivatives`, and :meth:`conditional` if it is to
    predict y. While :attr:`record` is None, as here, expectations under ``f ~ N(m, v)`` are sums over evenly spaced
    nodes, or with an ``order`` Gauss-Hermite quadrature (see :mod:`gaussfold.expectations.gauss_hermite` for what
    these can and cannot integrate). The built-in families name a record instead, and the compiled engine
    integrates them for every variance.

    Attributes
    ----------
    log_concave : bool
        Whether ``l'' ≤ 0`` for every label. False is the safe answer.
    labels : str
        Which labels are possible, in words, for error messages.
    remedy : str
        What to do about other labels, in words, for error messages.
    order : int or None
        Number of Gauss-Hermite points while ``record`` is None; None: evenly spaced nodes.

    Examples
    --------
    A likelihood of one's own, the double exponential smoothed at its tip:

    >>> class Smooth(ScalarLikelihood):
    ...     log_concave = True
    ...     def log_prob(self, y, f):
    ...         return -np.log(np.pi) - np.logaddexp(y - f, f - y) + np.log(2.0)
    ...     def derivatives(self, y, f):
    ...         t = np.tanh(y - f)
    ...         return t, t * t - 1.0
    >>> first, second = Smooth().expected_derivatives(1.5, Moments(0.2, 0.7))
    >>> print(f"{first:.6f} {second:.6f}")
    0.718945 -0.361216
    """

    log_concave: ClassVar[bool] = False
    labels: ClassVar[str] = "finite numbers"
    remedy: ClassVar[str] = "drop or correct such rows"
    order: ClassVar[int | None] = None

    @property
    def record(self) -> Record | None:
        """How the engine knows this likelihood: a record for which functions are registered; None if it does not."""
        return None

    def row_functions(self) -> RowFunctions:
        """The engine's expectations over rows; only asked for where there is a :attr:`record`.

        Loaded late, so that only those who integrate wait for Numba.
        """
        if self.record is None:
            raise ValueError(self._missing("record"))
        return over_arrays.row_functions(self.record)

    # What a subclass says.

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``l(f) = log p(y | f)``, normalised over y.

        Parameters
        ----------
        y : array
            Labels, broadcast against ``f``; what they count or measure is the family's.
        f : array
            Latent values, without a unit: x'θ, or a process at x.

        Returns
        -------
        array of the common shape

        Examples
        --------
        >>> from gaussfold.likelihoods import Poisson
        >>> Poisson().log_prob([0, 3], [0.0, 1.0]).round(4)
        array([-1.  , -1.51])
        """
        raise NotImplementedError(self._missing("log_prob(y, f)"))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``l'(f)`` and ``l''(f)``.

        Examples
        --------
        >>> from gaussfold.likelihoods import Poisson
        >>> first, second = Poisson().derivatives([0, 3], [0.0, 1.0])  # y - e^f, -e^f
        >>> first.round(4), second.round(4)
        (array([-1.    ,  0.2817]), array([-1.    , -2.7183]))
        """
        raise NotImplementedError(self._missing("derivatives(y, f)"))

    def conditional(self, f: ArrayLike) -> Moments:
        """Mean and variance of y given f.

        Examples
        --------
        >>> from gaussfold.likelihoods import Bernoulli
        >>> mean, variance = Bernoulli("logit").conditional([0.0, 2.0])  # σ(f), σ(f) (1 - σ(f))
        >>> mean.round(4), variance.round(4)
        (array([0.5   , 0.8808]), array([0.25 , 0.105]))
        """
        raise NotImplementedError(self._missing("conditional(f)"))

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """First and second derivatives of the conditional moments; central differences unless a family knows better."""
        (f,) = floats(f)
        step = 1e-4 * (1.0 + np.abs(f))
        below, here, above = (self.conditional(f + k * step) for k in (-1.0, 0.0, 1.0))
        first = ((a - b) / (2.0 * step) for a, b in zip(above, below, strict=True))
        second = ((a - 2.0 * h + b) / step**2 for a, h, b in zip(above, here, below, strict=True))
        return Moments(*first), Moments(*second)

    def explains(self, y: Array) -> np.ndarray:
        """Which of these labels are possible; every one unless a family says otherwise."""
        return np.ones(y.shape, dtype=bool)

    # What follows from it.

    def check_labels(self, y: ArrayLike, name: str = "y") -> None:
        """Raise a ValueError that names the first label that is infinite or impossible. NaN is neither.

        Examples
        --------
        >>> from gaussfold.likelihoods import Poisson
        >>> Poisson().check_labels([0.0, 2.0, float("nan")])
        >>> Poisson().check_labels([0.0, 2.5])
        Traceback (most recent call last):
        ValueError: y[1] = 2.5: Poisson labels must be whole numbers >= 0, or NaN to predict without learning;
            give counts, not rates, and drop or correct rows that have none
        """
        try:
            values = np.asarray(y, dtype=np.float64).ravel()
        except (TypeError, ValueError) as error:
            msg = f"{name} is not numeric ({error}); {self} labels must be {self.labels}"
            raise ValueError(msg) from error
        good = np.isfinite(values) & self.explains(values)
        if np.count_nonzero(good) == values.size:
            return
        bad = ~(good | np.isnan(values))
        if bad.any():
            row = int(np.argmax(bad))
            msg = (
                f"{name}[{row}] = {float(values[row])!r}: {self} labels must be {self.labels}, or NaN to "
                f"predict without learning; {self.remedy}"
            )
            raise ValueError(msg)

    # Each of these goes by nodes where the engine knows no record, and by rows in the engine elsewhere: the same few
    # lines around another integral, which are easier read than a function that takes both as functions.

    def expected_log_prob(self, y: ArrayLike, moments: Moments) -> Array:
        """``E log p(y | f)`` under ``f ~ N(mean, variance)``.

        Examples
        --------
        >>> from gaussfold.likelihoods import Poisson
        >>> print(f"{Poisson().expected_log_prob(3.0, Moments(1.0, 0.5)):.4f}")  # 3 m - exp(m + v/2) - log 3!
        -2.2821
        """
        shape, labels, latent = _flat(y, moments)
        if self.record is None:
            column = labels[:, None]
            value = gauss_hermite.expect(lambda f: self.log_prob(column, f), latent, self.order)
        else:
            value = self.row_functions().expected_log_prob(labels, *latent)
        return value.reshape(shape)

    def expected_derivatives(self, y: ArrayLike, moments: Moments) -> tuple[Array, Array]:
        """``E l'(f)`` and ``E l''(f)``: what the variational rule looks at.

        Examples
        --------
        >>> from gaussfold.likelihoods import Poisson
        >>> first, second = Poisson().expected_derivatives(3.0, Moments(1.0, 0.5))
        >>> print(f"{first:.4f} {second:.4f}")  # 3 - exp(m + v/2), -exp(m + v/2)
        -0.4903 -3.4903
        """
        shape, labels, latent = _flat(y, moments)
        if self.record is None:
            first, second = self._averaged_derivatives(labels[:, None], latent)
        else:
            first, second = self.row_functions().expected_derivatives(labels, *latent)
        return first.reshape(shape), second.reshape(shape)

    def _averaged_derivatives(self, y: Array, latent: Moments) -> tuple[Array, Array]:
        """Over the nodes; the second one with what kinks of log p add."""
        x, w = gauss_hermite.nodes(self.order)
        f = latent.mean[:, None] + np.sqrt(latent.variance)[:, None] * x
        first, second = (np.broadcast_to(d, f.shape) @ w for d in self.derivatives(y, f))
        value = np.broadcast_to(self.log_prob(y, f), f.shape)
        value = value - (value @ w)[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):  # no variance: l'' as it is
            by_parts = (value @ (w * (x * x - 1.0))) / latent.variance
        return first, mended(second, by_parts, np.abs(value) @ w, np.asarray(latent.variance))

    def log_predictive(self, y: ArrayLike, moments: Moments) -> Array:
        """``log E p(y | f)``: the score of predicting y before seeing it.

        Examples
        --------
        >>> from gaussfold.likelihoods import Bernoulli
        >>> latent = Moments([0.0, 1.0], [4.0, 4.0])
        >>> Bernoulli("probit").log_predictive([1.0, 1.0], latent).round(4)  # log Φ(m/√(1 + v))
        array([-0.6931, -0.3965])
        """
        shape, labels, latent = _flat(y, moments)
        if self.record is None:
            column = labels[:, None]
            value = gauss_hermite.log_expect_exp(lambda f: self.log_prob(column, f), latent, self.order)
        else:
            value = self.row_functions().log_predictive(labels, *latent)
        return value.reshape(shape)

    def tilted(self, y: ArrayLike, moments: Moments, alpha: float = 1.0) -> tuple[Array, Array, Array]:
        """``log E p(y | f)^α`` and its first two derivatives in the mean: what power EP matches.

        Examples
        --------
        >>> from gaussfold.likelihoods import Bernoulli
        >>> value, first, second = Bernoulli("probit").tilted(1.0, Moments(0.0, 1.0))
        >>> print(f"{value:.4f} {first:.4f} {second:.4f}")  # log 1/2, 1/√π, -1/π
        -0.6931 0.5642 -0.3183
        """
        shape, labels, latent = _flat(y, moments)
        if self.record is None:
            found = tilted(self.log_prob, self.derivatives, labels, latent, alpha)
        else:
            found = self.row_functions().tilted(alpha, labels, *latent)
        return found[0].reshape(shape), found[1].reshape(shape), found[2].reshape(shape)

    def predictive(self, moments: Moments) -> Moments:
        """Mean and variance of y, with f integrated out.

        Examples
        --------
        >>> from gaussfold.likelihoods import Poisson
        >>> mean, variance = Poisson().predictive(Moments(0.0, 1.0))
        >>> print(f"{mean:.4f} {variance:.4f}")  # √e; √e of counts and e (e - 1) of their rate
        1.6487 6.3195
        """
        mean, total, _ = self._integrated(moments)
        return Moments(mean, total)

    def conditional_mean(self, moments: Moments) -> Moments:
        """Mean and variance of ``E[y | f]``, rvga (62) and (63): the prediction's own uncertainty.

        Examples
        --------
        >>> from gaussfold.likelihoods import Bernoulli
        >>> mean, variance = Bernoulli("logit").conditional_mean(Moments(1.0, 4.0))
        >>> print(f"{mean:.3f} ± {variance**0.5:.3f}")  # a probability, and how well it is known
        0.648 ± 0.296
        """
        mean, _, epistemic = self._integrated(moments)
        return Moments(mean, epistemic)

    def config(self) -> dict[str, object]:
        """Name and parameters; :func:`gaussfold.likelihoods.from_config` turns them back into an object.

        Examples
        --------
        >>> from gaussfold.likelihoods import Gamma
        >>> Gamma(shape=2.0).config()
        {'name': 'Gamma', 'shape': 2.0}
        """
        return dict(registry.config(self))

    def __str__(self) -> str:
        return type(self).__name__

    def _integrated(self, moments: Moments) -> tuple[Array, Array, Array]:
        """Mean of y, its total variance, and the part of that which comes from not knowing f."""
        shape, _, latent = _flat(0.0, moments)
        if self.record is None:
            mean, noise = gauss_hermite.expect(lambda f: _stacked(*self.conditional(f), f), latent, self.order)
            epistemic = gauss_hermite.expect(
                lambda f: (self.conditional(f).mean - mean[:, None]) ** 2, latent, self.order
            )
            total = noise + epistemic
        else:
            mean, total, epistemic = self.row_functions().predictive(*latent)
        return mean.reshape(shape), total.reshape(shape), epistemic.reshape(shape)

    def _missing(self, method: str) -> str:
        return f"{self} does not say {method}; define that method to use what depends on it"


floats = numpy_floats


def _flat(y: ArrayLike, moments: Moments) -> tuple[tuple[int, ...], Array, Moments]:
    """Find the common shape, and flatten labels and moments broadcast to it, as the engine takes them."""
    given = [np.asarray(a, dtype=np.float64) for a in (y, *moments)]
    shape = np.broadcast_shapes(*(a.shape for a in given))
    # What has to be spread out is copied: the engine should not see NumPy's views of one number many times.
    labels, mean, variance = (
        np.ascontiguousarray(a if a.shape == shape else np.array(np.broadcast_to(a, shape))).ravel() for a in given
    )
    if (variance < 0.0).any():
        row = int(np.argmax(variance < 0.0))
        msg = (
            f"moments.variance[{row}] = {float(variance[row])!r}: a variance is never negative; "
            "pass Moments(mean, variance)"
        )
        raise ValueError(msg)
    return shape, labels, Moments(mean, variance)


def _stacked(first: ArrayLike, second: ArrayLike, f: Array) -> Array:
    """Two elementwise functions of f on one new leading axis; constants are spread out."""
    return np.stack([np.broadcast_to(first, f.shape), np.broadcast_to(second, f.shape)])
