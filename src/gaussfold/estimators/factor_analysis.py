"""Factor analysis of a stream: a covariance as low rank plus diagonal, in memory linear in the features."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError

from gaussfold import checks, schema
from gaussfold.estimators.factor_streams import FactorParameters, new_stream
from gaussfold.estimators.frames import names_of
from gaussfold.estimators.parameters import RandomState, keep
from gaussfold.estimators.storage import decode_names
from gaussfold.estimators.validation import checked
from gaussfold.factors.model import FactorStream, posterior
from gaussfold.observations import LARGEST
from gaussfold.registry import decode, encode
from gaussfold.store.codecs import decode_rng, encode_rng
from gaussfold.types import Array, ArrayLike


class StreamingFactorAnalysis(FactorParameters, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Factor analysis in one pass: x = mean + F h + noise, with independent noise per feature.

    Parameters
    ----------
    n_components : int
        Number of factors p.
    method : {"recursive-em", "online-em", "gradient"}
        "recursive-em" projects the covariance of everything seen so far back to low rank plus diagonal as rows come
        (lrvga §5.1); no step size. "online-em" averages the statistics of EM (lrvga App. C, thesis Alg. 2).
        "gradient" climbs the likelihood (thesis Alg. 1).
    inner_loops : int
        recursive-em: steps per projection.
    ppca : bool
        One noise variance for all features: probabilistic principal components.
    projection : {"eigen", "em"}
        recursive-em: how a projection begins, see :class:`gaussfold.LowRankGaussian`; "em" is the paper's.
    block_size : int or None
        recursive-em: rows per projection; None: 32. online-em: rows per step; None: as many as features but at least
        100, or 1 with step="average" or a given ``start``.
    step : {"power", "average"}
        online-em: statistics move by t^-0.6, and the answer averages the later iterates; or by 1/t.
    optimizer : "sgd", "adam", or an object with optax's ``init`` and ``update``
        gradient: how a step is taken.
    learning_rate : float
        gradient: for the optimisers given by name.
    warm_up : int or None
        recursive-em: rows that wait until their scale is known. online-em and gradient: rows during which only
        averages move. None: 100.
    center : bool
        Whether the mean is learned; False takes it to be zero.
    start : array of shape (n_features, n_components), optional
        Factors to start from; with ``start_noise`` recursive-em starts at once, without a warm-up.
    start_noise : array of shape (n_features,), optional
        Noise variances to start from.
    prior_count : int
        online-em: rows that the start is worth.
    average_from : int or None
        online-em with step="power": average the iterates after this row; None: over at least the latest half.
    random_state : int, generator or None
        For the start.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    noise_variance_ : array of shape (n_features,)
    mean_ : array of shape (n_features,)
    n_samples_seen_ : int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 1)) @ [[3.0, 2.0, -1.0]] + rng.standard_normal((500, 3))
    >>> model = StreamingFactorAnalysis(1).partial_fit(X[:200]).partial_fit(X[200:])
    >>> print(np.abs(model.components_ / model.components_[0, 0]).round(1))
    [[1.  0.7 0.3]]
    """

    n_features_in_: int
    _stream: FactorStream | None = None
    _settled: list[FactorStream]
    _made_with: dict[str, object] | None = None

    def __init__(  # scikit-learn reads it: see `keep`
        self,
        n_components: int = 2,
        method: str = "recursive-em",
        *,
        inner_loops: int = 1,
        ppca: bool = False,
        projection: str = "eigen",
        block_size: int | None = None,
        step: str = "power",
        optimizer: object = "sgd",
        learning_rate: float = 1e-3,
        warm_up: int | None = None,
        center: bool = True,
        start: ArrayLike = None,
        start_noise: ArrayLike = None,
        prior_count: int = 1,
        average_from: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        keep(self, locals())

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Forget everything, then learn from these rows in one pass."""
        rows = self._rows(X, reset=True)
        stream = new_stream(self, rows.shape[1])
        self._learn(stream, rows)
        return self

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Learn from more rows; however the stream is cut into calls, the model is the same."""
        before = self._stream
        rows = self._rows(X, reset=before is None)
        if before is not None and self._as_before():
            self._learn(before.twin(), rows)
            return self
        stream = new_stream(self, rows.shape[1], None if before is None else before.F)
        if before is not None:
            stream.restore(before.state())
        self._learn(stream, rows)
        return self

    def _as_before(self) -> bool:
        """Whether the parameters are those that the stream was made with: then it need not be made again."""
        now = self.get_params(deep=False)
        return self._made_with is not None and all(now[name] is value for name, value in self._made_with.items())

    def transform(self, X: ArrayLike) -> Array:
        """Posterior mean of the factors of each row, shape (n_rows, n_components)."""
        model = self._model()
        rows = self._rows(X, reset=False)
        return np.asarray((rows - model.mean) @ posterior(model.F, model.psi)[1].T)

    def score_samples(self, X: ArrayLike) -> Array:
        """Log density of each row."""
        model = self._model()
        rows = self._rows(X, reset=False)
        away = rows - model.mean
        sigma, gain = posterior(model.F, model.psi)
        factors = away @ gain.T
        # |Ψ^(-1/2)(x - Fz)|² + |z|² at the posterior mean z: a sum of squares, as good as the determinant
        left = away - factors @ model.F.T
        square = np.einsum("ij,ij,j->i", left, left, 1.0 / model.psi) + np.einsum("ij,ij->i", factors, factors)
        log_det = float(np.log(model.psi).sum()) - float(np.linalg.slogdet(sigma)[1])
        return np.asarray(-0.5 * (square + log_det + rows.shape[1] * math.log(2.0 * math.pi)))

    def score(self, X: ArrayLike, y: object = None) -> float:  # noqa: ARG002 - scikit-learn's signature
        """Mean log density of the rows."""
        return float(self.score_samples(X).mean())

    def get_covariance(self) -> Array:
        """F F' + Ψ, written out."""
        model = self._model()
        return np.asarray(model.F @ model.F.T + np.diag(model.psi))

    def get_precision(self) -> Array:
        """The covariance's inverse, by Woodbury's identity."""
        model = self._model()
        scaled = model.F / model.psi[:, None]
        return np.asarray(np.diag(1.0 / model.psi) - scaled @ posterior(model.F, model.psi)[0] @ scaled.T)

    @property
    def components_(self) -> Array:
        """Factors, one per row."""
        return self._model().F.T.copy()

    @property
    def noise_variance_(self) -> Array:
        """Variance of each feature that no factor explains."""
        return self._model().psi.copy()

    @property
    def mean_(self) -> Array:
        """Mean of the rows."""
        return self._model().mean.copy()

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned so far."""
        return int(self._model().count)

    # Model files: see `gaussfold.store`.

    def state(self) -> dict[str, np.ndarray]:
        """Everything that was learned, and parameters that are arrays, as plain named arrays."""
        arrays = {f"stream.{name}": np.asarray(value) for name, value in self._fitted().state().items()}
        given = {"start": self.start, "start_noise": self.start_noise}
        return arrays | {f"parameter.{k}": np.asarray(v, dtype=np.float64) for k, v in given.items() if v is not None}

    def store_header(self) -> dict[str, object]:
        """Parameters and names, as JSON can hold them."""
        self._fitted()
        values = {k: v for k, v in self.get_params(deep=False).items() if k not in ("start", "start_noise")}
        values["optimizer"] = encode(self.optimizer)
        values["random_state"] = encode_rng(self.random_state)
        names = names_of(self)
        return {
            "parameters": values,
            "n_features": int(self.n_features_in_),
            "feature_names": None if names is None else names.tolist(),
        }

    @classmethod
    def from_store(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Rebuild, bit for bit, the model that `state` and `store_header` describe."""
        values = dict(header["parameters"])
        values["random_state"] = decode_rng(values["random_state"])
        values["optimizer"] = decode(values["optimizer"], "optimizer")
        for name in ("start", "start_noise"):
            values[name] = arrays.get(f"parameter.{name}")
        self = cls(**values)
        self.n_features_in_ = checks.whole("n_features", header["n_features"])
        if header["feature_names"] is not None:
            self.feature_names_in_ = decode_names(header["feature_names"], self.n_features_in_)
        state = schema.part_of(arrays, "stream.")
        shape = (self.n_features_in_, self.n_components)  # before room of that size is made
        schema.equal("stream.F", state["F"].shape, shape, "features and components")
        stream = new_stream(self, self.n_features_in_, state["F"])
        for name in stream.state():
            schema.equal(f"stream.{name} is there", name in state, True, f"method={self.method!r} has it")
        stream.check(state)
        stream.restore(state)
        self._stream, self._settled = stream, []
        return self

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def __sklearn_is_fitted__(self) -> bool:
        return self._stream is not None

    def _fitted(self) -> FactorStream:
        if self._stream is None:
            msg = "this StreamingFactorAnalysis has seen no rows; call fit or partial_fit first"
            raise NotFittedError(msg)
        return self._stream

    def _model(self) -> FactorStream:
        stream = self._fitted()
        if not self._settled:
            self._settled.append(stream.settled())
        return self._settled[0]

    def _rows(self, X: ArrayLike, *, reset: bool) -> Array:
        """Doubles whose squares are numbers too; names and number of the columns set or compared."""
        rows: Array = checked(self, X, reset=reset)
        large = np.abs(rows) > LARGEST
        if large.any():
            row, column = (int(k) for k in np.argwhere(large)[0])
            msg = f"X: row {row} has {rows[row, column]} in column {column}: its square is no number; scale the column"
            raise ValueError(msg)
        return rows

    def _learn(self, stream: FactorStream, rows: Array) -> None:
        """Learn with a stream of its own, and take it only if all went well."""
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # looked for below
                stream.learn(rows)
            as_it_was = self._stream is not None and stream.F is self._stream.F  # rows only wait: nothing to look at
            lost = not as_it_was and not (
                np.isfinite(stream.F).all() and np.isfinite(stream.psi).all() and (stream.psi > 0.0).all()
            )
        except ValueError as problem:  # LinAlgError is one; ours name the argument
            if str(problem).startswith("X:"):
                raise
            lost = True
        if lost:
            msg = (
                f"X: after {len(rows)} rows the model is no longer finite and positive; nothing was learned "
                "from this call. Scale the features, or lower learning_rate"
            )
            raise ValueError(msg)
        self._stream, self._settled, self._made_with = stream, [], self.get_params(deep=False)
