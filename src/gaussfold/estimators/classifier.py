"""Streaming Bayesian classification: logistic or probit regression in one pass."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin

from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.estimators import classes as together
from gaussfold.estimators import labels, mixtures
from gaussfold.estimators.documented import documented
from gaussfold.estimators.folded import Folded
from gaussfold.estimators.pace import OwnPace
from gaussfold.estimators.parameters import RandomState, StreamingParameters, keep
from gaussfold.estimators.streaming import StreamingEstimator
from gaussfold.expectations.classes import class_probability_std
from gaussfold.likelihoods import Bernoulli
from gaussfold.likelihoods.bernoulli import Expectation
from gaussfold.likelihoods.links import Name as Link
from gaussfold.protocols import Likelihood
from gaussfold.rules.at import At
from gaussfold.rules.base import StreamRule
from gaussfold.types import Array, ArrayLike, Moments


@documented(StreamingParameters)
class StreamingClassifier(ClassifierMixin, StreamingEstimator):
    """Bayesian logistic or probit regression, folded forward one row at a time.

    ``p(y = 1 | x) = g(x'θ)`` with a Gaussian belief over θ. There is no learning rate and nothing to tune;
    probabilities integrate over what is not known of θ, rvga (62).

    With more than two classes ``p(y = k | x)`` is the softmax of latents x'θ_k, one for each class, integrated over
    what is not known of the θ_k. Or (``multi_class="ovr"``) each class has a belief of its own, learned one-vs-rest:
    class k's belief sees the label 1 for its rows and 0 for all others, and its integrated probability is divided by
    the sum of these over the classes.

    Parameters
    ----------
    %(covariance, rank)s
    link : {"logit", "probit"}, default="logit"
        The function g: logistic, or the normal distribution function.
    %(rule, at, coupling, prior_std, prior_mean, forgetting, fit_intercept, random_state, intercept_std, drift_std)s
    %(tick)s
    expectation : {"quadrature", "probit"}, default="quadrature"
        How the logistic function is integrated: to rounding error, or by the closed form of rvga (58).
    %(block_size, second_look, ensemble, scale)s
    multi_class : {"auto", "softmax", "ovr"}, default="auto"
        More than two classes by a softmax or one-vs-rest. "auto": softmax, unless an option asks for what only
        one-vs-rest has (a probit link, another rule than vi at the posterior, second_look, an ensemble, "auto" for
        drift_std, forgetting or the prior_std of a diagonal posterior).
    class_covariance : {"auto", "joint", "block"}, default="auto"
        Of a softmax with ``covariance="full"``: one covariance over the weights of all classes, or one for each class.
        "auto": joint up to 200 weights in all.
    class_weight : dict, "balanced" or None, default=None
        Factor of the sample weights by label; labels left out have 1. "balanced", for `fit` alone: n/(K n_k), so
        that every class counts the same in all.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    coef_, coef_std_ : arrays of shape (1, n_features), or (n_classes, n_features) for more than two classes
        Posterior mean and standard deviation of the weights. With ``covariance="diagonal"`` the latter is how well a
        weight is known *if the others are*: too small where features are correlated (see ``ensemble``).
    intercept_, intercept_std_ : arrays of shape (1,) or (n_classes,)
        The same for the intercept.
    posterior_ : belief, or list of beliefs for classes one-vs-rest
        The belief itself, the intercept's weight last; of a softmax over the weights of all classes, one class after
        the other: a `DenseGaussian`, `BlockGaussian`, `DiagonalBlocks` or `DiagonalClassStack`.
    %(prior_std_, progressive_log_loss_, n_observations_, n_features_in_, feature_names_in_)s

    See Also
    --------
    gaussfold.fold : the same without scikit-learn's conventions.

    Notes
    -----
    A missing label (NaN, None) means: leave that row out. Labels may be soft: for the classes 0 and 1 a
    number between them is the probability of class 1. One pass is not order-free, and a weight of 2 is close
    to, but not the same as, seeing the row twice; with `fit`, which visits rows until the posterior settles, both are.

    The softmax's weights are told apart by the prior alone where those of all classes move together: adding the same
    number to the weights of a feature in all classes changes no probability. ``coef_std_`` has that in it where the
    covariance is joint; differences between classes are what data speak of.

    ``prior_std="auto"`` one-vs-rest with ``covariance="diagonal"``: ``progressive_log_loss_`` takes each row's mixture
    over the priors as the Gaussian of the same mean and variance, since the components are not kept; ``predict_proba``
    and the loss of two classes mix exactly.

    References
    ----------
    rvga (56)-(63) for the likelihood and its predictions, (73)-(77) for the default update.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussfold import StreamingClassifier
    >>> X = np.array([[-2.0], [-1.0], [-0.5], [0.4], [1.1], [2.3]])
    >>> y = np.array(["no", "no", "yes", "no", "yes", "yes"])
    >>> model = StreamingClassifier(prior_std=2.0)
    >>> for row, label in zip(X, y):
    ...     model = model.partial_fit([row], [label], classes=["no", "yes"])
    >>> model.predict([[-1.5], [1.5]]).tolist()
    ['no', 'yes']
    >>> model.predict_proba([[1.5], [150.0]]).round(2)
    array([[0.14, 0.86],
           [0.03, 0.97]])
    """

    class_weight: dict[Hashable, float] | str | None
    classes_: np.ndarray
    expectation: Expectation
    link: Link
    multi_class: str

    def __init__(  # scikit-learn reads it: see `keep`
        self,
        covariance: str = "full",
        rank: int | None = None,
        link: Link = "logit",
        rule: str | StreamRule | None = None,
        at: str | At = "posterior",
        coupling: str | Coupling = "marginal",
        prior_std: ArrayLike = "auto",
        prior_mean: ArrayLike = 0.0,
        forgetting: float | str = 1.0,
        fit_intercept: bool = True,
        random_state: RandomState = None,
        intercept_std: float | None = None,
        drift_std: float | str = 0.0,
        tick: str = "observation",
        expectation: Expectation = "quadrature",
        block_size: int | None = None,
        second_look: int = 0,
        ensemble: int = 1,
        scale: bool = True,
        multi_class: str = "auto",
        class_covariance: str = "auto",
        class_weight: dict[Hashable, float] | str | None = None,
    ) -> None:
        keep(self, locals())

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None, refine: int | str | None = "auto"
    ) -> Self:
        """As for every streaming estimator; the weights of the classes are worked in first."""
        weight = labels.class_weights(self.class_weight, y, sample_weight, type(self).__name__, whole=True)
        return super().fit(X, y, weight, refine)

    def partial_fit(  # type: ignore[override] # scikit-learn's order: classes before sample_weight
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike = None, sample_weight: ArrayLike = None
    ) -> Self:
        """Learn from more rows; however the stream is cut into calls, the posterior is the same.

        Parameters
        ----------
        X : array, CSR matrix or dataframe of shape (n_samples, n_features)
            Finite numbers.
        y : array of shape (n_samples,)
            Labels of any kind; NaN or None for a row to leave out.
        classes : array of shape (n_classes,), optional
            All labels that can occur. Needed in the first call unless its ``y`` shows them all.
        sample_weight : array of shape (n_samples,), optional
            Each row's likelihood is raised to this power (>= 0).

        Returns
        -------
        self
        """
        weight = labels.class_weights(self.class_weight, y, sample_weight, type(self).__name__, whole=False)
        return self._absorb(X, y, weight, classes)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the most probable class of each row."""
        # by the numbers that predict_proba shows, so that the two never disagree
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability of each class with θ integrated out, rvga (62); shape (n_rows, n_classes)."""
        if self._together > 1:
            return np.exp(self.predict_log_proba(X))
        latent = self._latent(X)
        if len(latent) == 1:
            return mixtures.both_sides(self._likelihood, latent[0])
        return np.exp(self._normalised(latent))

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Logarithm of `predict_proba`, also where that is too small for a double."""
        if self._together > 1:
            return together.log_probabilities(self._beliefs[0], self._design(X), self._together)
        latent = self._latent(X)
        if len(latent) == 1:
            sides = [mixtures.log_predictive(self._likelihood, label, latent[0]) for label in (0.0, 1.0)]
            return np.stack(sides, axis=1)
        return self._normalised(latent)

    def decision_function(self, X: ArrayLike) -> Array:
        """Log odds of the second class, shape (n_rows,); for several, each class's log probability less their mean.

        The largest (or, for two classes, the sign) tells the class that `predict` does.
        """
        log_p = self.predict_log_proba(X)
        if log_p.shape[1] == 2:
            return np.asarray(log_p[:, 1] - log_p[:, 0])
        return np.asarray(log_p - log_p.mean(axis=1, keepdims=True))

    def predict_proba_std(self, X: ArrayLike) -> Array:
        """Posterior standard deviation of each class's probability g(x'θ): the square root of rvga (63).

        How unsure the model is of the probability itself; it shrinks as data come in. For classes one-vs-rest it is
        that of the probability before normalisation (draw `sample_proba` for the normalised one). Shape (n_rows,
        n_classes).
        """
        if self._together > 1:
            return class_probability_std(*self._class_latents(X))
        latent = self._latent(X)
        std = np.sqrt([mixtures.conditional_mean(self._likelihood, moments).variance for moments in latent]).T
        return np.repeat(std, 2, axis=1) if len(latent) == 1 else std

    def sample_proba(self, X: ArrayLike, n_samples: int = 1, rng: RandomState = None) -> Array:
        """Draw weights from the posterior and return the probabilities they give: Thompson sampling.

        One draw of the weights serves all rows. ``rng=None`` uses and advances the model's own generator.

        Returns
        -------
        array of shape (n_samples, n_rows, n_classes)
        """
        latent = self.sample_latent(X, n_samples, rng)
        if latent.ndim == 2:
            latent = np.stack([-latent, latent], axis=2)
            return np.asarray(self._likelihood.conditional(latent).mean)
        log_p = latent if self._together > 1 else self._likelihood.log_prob(1.0, latent)
        return np.asarray(np.exp(log_p - logsumexp(log_p, axis=2, keepdims=True)))

    def _resolve_likelihood(self) -> Likelihood:
        return Bernoulli(self.link, self.expectation)

    def _targets(self, y: ArrayLike, n_rows: int, classes: ArrayLike = None) -> list[Array]:
        found = labels.read(y, n_rows, type(self).__name__)
        if not self._beliefs:
            self.classes_ = labels.find_classes(found, classes)
            softmax = len(self.classes_) > 2 and together.is_softmax(self.multi_class, self._ovr_alone())
            self._hold_together(len(self.classes_) if softmax else 1)
        elif classes is not None and not np.array_equal(labels.find_classes(found, classes), self.classes_):
            msg = (
                f"classes={classes!r} differ from those of the first call, {self.classes_.tolist()}; "
                "the classes cannot change once learning has begun"
            )
            raise ValueError(msg)
        codes = labels.encode(found, self.classes_)
        if len(self.classes_) == 2 or self._together > 1:
            return [codes]
        missing = np.isnan(codes)
        return [np.where(missing, np.nan, codes == k) for k in range(len(self.classes_))]

    def _ovr_alone(self) -> list[str]:
        """What was asked for that only one-vs-rest has."""
        now = self._settings
        asked = {
            f"link={self.link!r}": self.link != "logit",
            f"expectation={self.expectation!r}": self.expectation != "quadrature",
            f"rule={self.rule!r}": self.rule is not None and not now.rule.takes_classes,
            f"at={self.at!r}": not now.at.is_implicit,
            f"second_look={self.second_look!r}": bool(now.second_look),
            f"ensemble={self.ensemble!r}": self.ensemble != 1,
            f"{len(self.classes_)} classes (at most {together.MOST_CLASSES})": (
                len(self.classes_) > together.MOST_CLASSES and now.prior.covariance != "full"
            ),
            f"drift_std={self.drift_std!r}, forgetting={self.forgetting!r}": isinstance(now.dynamics, OwnPace),
        }
        return [words for words, is_so in asked.items() if is_so]

    def _class_latents(self, X: ArrayLike) -> tuple[Array, Array]:
        return together.latents(self._beliefs[0], self._design(X), self._together)

    def _score(self, folded: Folded) -> Array:
        if len(folded.results) == 1:
            return folded.log_predictive()
        rows = folded.learned
        latent = [mixtures.met(result, rows) for result in folded.results]
        own = np.argmax(np.stack(folded.targets, axis=1)[rows], axis=1)
        return np.take_along_axis(self._normalised(latent), own[:, None], axis=1)[:, 0]

    def _normalised(self, latent: list[Moments]) -> Array:
        """Log of the integrated one-vs-rest probabilities over their sum."""
        log_p = np.stack([mixtures.log_predictive(self._likelihood, 1.0, moments) for moments in latent], axis=1)
        return np.asarray(log_p - logsumexp(log_p, axis=1, keepdims=True))

    def _per_output(self, values: Array) -> Array:
        return values
