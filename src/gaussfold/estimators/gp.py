"""Gaussian-process classification and regression as scikit-learn estimators: naming and label codes only.

All the work is `gaussfold.gp.GaussianProcess`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from gaussfold import schema
from gaussfold.checks import number, positive, whole
from gaussfold.estimators.documented import documented
from gaussfold.estimators.frames import names_of
from gaussfold.estimators.parameters import keep
from gaussfold.estimators.storage import count_of, decode_names
from gaussfold.estimators.validation import checked
from gaussfold.gp import Covariance, GaussianProcess, Matern32
from gaussfold.likelihoods import Bernoulli, Gaussian, StudentT
from gaussfold.likelihoods.links import Name as Link
from gaussfold.protocols import Likelihood
from gaussfold.registry import decode, encode
from gaussfold.rules import Curvature, SiteRule
from gaussfold.store.codecs import decode_labels, decode_rng, encode_labels, encode_rng
from gaussfold.types import Array, ArrayLike

LEAST_NOISE = 1e-5
"""Share of the targets' spread below which noise is not learned: energies are sums of 1/noise² that cancel."""


class _GPEstimator(BaseEstimator):
    """What both share: building, learning, storing.

    Parameters
    ----------
    covariance : Covariance, default=None
        Where learning starts; None is ``Matern32(1.0, 1.0)``.
    learn_hyperparameters : bool, default=True
        Whether to learn the hyperparameters of covariance and likelihood (and the inducing inputs).
    learning_steps : int, default=20
        Most steps of the optimiser.
    random_state : int or Generator, default=None
        For the choice of inducing inputs.
    """

    covariance: Covariance | None
    rule: str | SiteRule | None
    curvature: str | Curvature | None
    structure: str
    inducing: ArrayLike
    damping: float
    max_iter: int
    tol: float
    learn_hyperparameters: bool
    learning_steps: int
    random_state: int | np.random.Generator | None
    n_features_in_: int
    _models: list[GaussianProcess]

    def _fitted_process(
        self, likelihood: Likelihood, X: Array, y: Array, bounds: dict[str, tuple[float, float]] | None = None
    ) -> GaussianProcess:
        covariance = Matern32() if self.covariance is None else self.covariance
        model = GaussianProcess(
            covariance, likelihood, self.rule, self.curvature, self.structure, inducing=self.inducing,
            damping=self.damping, max_iter=self.max_iter, tol=self.tol, random_state=self.random_state, verbose=False,
        ).fit(X, y)  # fmt: skip
        if self.learn_hyperparameters:
            model.learn_hyperparameters(max_iter=self.learning_steps, bounds=bounds)
        return model

    def _count(self) -> None:
        """Note the iterations of the first inference, the most over all models."""
        self.n_iter_ = max(model.result_.iterations for model in self._models)

    @property
    def log_marginal_likelihood_(self) -> float:
        """Approximate log marginal likelihood, summed over one-against-rest problems: minus the energy."""
        check_is_fitted(self)
        return -sum(model.energy() for model in self._models)

    def state(self) -> dict[str, np.ndarray]:
        """Every model's arrays."""
        check_is_fitted(self)
        arrays = {f"gp{i}.{name}": a for i, model in enumerate(self._models) for name, a in model.state().items()}
        if np.ndim(self.inducing):
            arrays["parameter.inducing"] = np.asarray(self.inducing, dtype=np.float64)
        return arrays

    def store_header(self) -> dict[str, object]:
        """Parameters and every model's description."""
        values = self.get_params(deep=False)
        values.pop("random_state")
        if np.ndim(values["inducing"]):
            values.pop("inducing")
        values = {name: encode(value) for name, value in values.items()}
        names = names_of(self)
        described = {
            "parameters": values,
            "random_state": encode_rng(self.random_state),
            "n_features": int(self.n_features_in_),
            "models": [model.store_header() for model in self._models],
        }
        if names is not None:
            described["feature_names"] = names.tolist()
        return described | self._more()

    def _more(self) -> dict[str, object]:
        return {}

    @classmethod
    def from_store(cls, described: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Undo `state` and `store_header`."""
        values = dict(described["parameters"])
        values |= {name: decode(values[name], name) for name in ("covariance", "rule", "curvature")}
        if "parameter.inducing" in arrays:
            values["inducing"] = arrays["parameter.inducing"]
        self = cls(**values, random_state=decode_rng(described["random_state"]))
        self.n_features_in_ = whole("n_features", described["n_features"])
        if "feature_names" in described:
            self.feature_names_in_ = decode_names(described["feature_names"], self.n_features_in_)
        self._models = []
        for i, header in enumerate(described["models"]):
            model = GaussianProcess.from_store(header, schema.part_of(arrays, f"gp{i}."))
            schema.equal(f"gp{i}.X", model.X_.shape[1], self.n_features_in_, "one column for each feature")
            self._models.append(model)
        schema.equal("models", len(self._models), count_of(described), "for two classes 1, else one each")
        self._restore(described)
        self._count()
        return self

    def _restore(self, described: dict[str, Any]) -> None:
        """Whatever `_more` added."""


@documented(GaussianProcess, _GPEstimator)
class GPClassifier(ClassifierMixin, _GPEstimator):
    """Gaussian-process classification; more than two classes one against the rest.

    Parameters
    ----------
    %(covariance)s
    link : {"logit", "probit"}, default="logit"
        From the latent function to the probability.
    %(rule, curvature, structure, inducing, damping, max_iter, tol, learn_hyperparameters, learning_steps)s
    %(random_state)s

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    processes_ : list of GaussianProcess
        One for two classes, else one per class.

    Examples
    --------
    >>> X = np.linspace(-3.0, 3.0, 30)[:, None]
    >>> y = np.where(np.abs(X[:, 0]) < 1.5, "in", "out")
    >>> model = GPClassifier(Matern32(4.0, 1.0), learn_hyperparameters=False).fit(X, y)
    >>> model.predict([[0.0], [2.5]])
    array(['in', 'out'], dtype='<U3')
    """

    link: Link

    def __init__(  # scikit-learn reads it: see `keep`
        self,
        covariance: Covariance | None = None,
        link: Link = "logit",
        rule: str | SiteRule | None = None,
        curvature: str | Curvature | None = None,
        structure: str = "dense",
        *,
        inducing: ArrayLike = None,
        damping: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-6,
        learn_hyperparameters: bool = True,
        learning_steps: int = 20,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        keep(self, locals())

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from all rows."""
        X, y = checked(self, X, y)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            msg = f"y has one class only ({classes[0]!r}): GPClassifier needs at least two classes"
            raise ValueError(msg)
        targets = [codes == 1] if len(classes) == 2 else [codes == k for k in range(len(classes))]
        self._models = [self._fitted_process(Bernoulli(self.link), X, t.astype(np.float64)) for t in targets]
        self.classes_ = classes
        self._count()
        return self

    @property
    def processes_(self) -> list[GaussianProcess]:
        """The fitted models."""
        check_is_fitted(self)
        return self._models

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities (n, classes), the latent functions integrated out; one-against-rest scores are normalised."""
        check_is_fitted(self)
        X = checked(self, X, reset=False)
        scores = np.stack([model.predict(X) for model in self._models], axis=1)
        if scores.shape[1] == 1:
            return np.hstack([1.0 - scores, scores])
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The most probable class."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def _more(self) -> dict[str, object]:
        return {"classes": encode_labels(self.classes_)}

    def _restore(self, described: dict[str, Any]) -> None:
        self.classes_ = decode_labels(described["classes"])


@documented(GaussianProcess, _GPEstimator)
class GPRegressor(RegressorMixin, _GPEstimator):
    """Gaussian-process regression with normal or Student-t noise.

    Parameters
    ----------
    %(covariance)s
        For targets scaled to unit variance.
    noise_std : float, default=0.5
        Standard deviation of the noise (its scale, for Student-t), on the scale of the scaled targets; where learning
        starts. Less than 1e-5 of the targets' spread is not learned.
    df : float, default=None
        A number gives the noise a Student-t distribution with so many degrees of freedom.
    %(rule, curvature, structure)s
    normalize_y : bool, default=True
        Whether to centre the targets and scale them to unit variance inside.
    %(inducing, damping, max_iter, tol, learn_hyperparameters)s
    learning_steps : int, default=50
        Most steps of the optimiser.
    %(random_state)s

    Examples
    --------
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> model = GPRegressor().fit(X, np.sin(X[:, 0]))
    >>> mean, std = model.predict([[3.1]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(3.1)) < 0.01)
    True
    """

    noise_std: float
    df: float | None
    normalize_y: bool

    def __init__(  # scikit-learn reads it: see `keep`
        self,
        covariance: Covariance | None = None,
        noise_std: float = 0.5,
        df: float | None = None,
        rule: str | SiteRule | None = None,
        curvature: str | Curvature | None = None,
        structure: str = "dense",
        *,
        normalize_y: bool = True,
        inducing: ArrayLike = None,
        damping: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-6,
        learn_hyperparameters: bool = True,
        learning_steps: int = 50,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        keep(self, locals())

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from all rows."""
        X, y = checked(self, X, y, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        likelihood = Gaussian(self.noise_std) if self.df is None else StudentT(self.df, self.noise_std)
        spread = float(y.std())
        offset, scale = (float(y.mean()), spread if spread > 0.0 else 1.0) if self.normalize_y else (0.0, 1.0)
        least = min(LEAST_NOISE * (spread or 1.0) / scale, self.noise_std)
        bounds = {"likelihood.std" if self.df is None else "likelihood.scale": (least, least / LEAST_NOISE**2)}
        self._models = [self._fitted_process(likelihood, X, (y - offset) / scale, bounds)]
        self._offset, self._scale = offset, scale
        self._count()
        return self

    @property
    def process_(self) -> GaussianProcess:
        """The fitted model, of the scaled targets."""
        check_is_fitted(self)
        return self._models[0]

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Mean of y (and its standard deviation, noise included)."""
        check_is_fitted(self)
        X = checked(self, X, reset=False)
        mean, std = self._models[0].predict(X, return_std=True)
        mean = self._offset + self._scale * mean
        return (mean, self._scale * std) if return_std else mean

    def _more(self) -> dict[str, object]:
        return {"scaling": [self._offset, self._scale]}

    def _restore(self, described: dict[str, Any]) -> None:
        offset, scale = described["scaling"]
        self._offset, self._scale = number("scaling", offset), positive("scaling", scale)
