"""What the streaming estimators share: the way from scikit-learn's conventions to `fold` and back.

No mathematics here: rows and parameters are checked (`validation`, `settings`), `fold` does the work.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.utils import Tags

from gaussfold import checks, rules, schema
from gaussfold.estimators import classes, gaussians, settings, storage, validation
from gaussfold.estimators.coordinates import Ways
from gaussfold.estimators.folded import learned_rows
from gaussfold.estimators.learning import Learner
from gaussfold.estimators.noise import NoiseBelief
from gaussfold.estimators.noise_bank import NoiseBank
from gaussfold.estimators.parameters import RandomState
from gaussfold.estimators.priors import AUTO, AnyBelief
from gaussfold.metrics import Diagnosis, diagnose
from gaussfold.protocols import Likelihood
from gaussfold.rows import AnyRows
from gaussfold.types import Array, ArrayLike

_LEARNED = (
    "_beliefs", "_coordinates", "_early", "_joint", "_likelihood", "_lookbacks", "_loss", "_noise", "_parameters",
    "_rng", "_settings", "_together", "_ways", "classes_", "feature_names_in_", "n_features_in_", "n_observations_",
)  # fmt: skip


class StreamingEstimator(Learner):
    """One Gaussian belief over the weights (or one per class), folded forward row by row."""

    # Set by the first call that learns; `_LEARNED` lists them for `fit`, which forgets them.
    _parameters: dict[str, ArrayLike]

    class_covariance: str = "auto"
    """Of a classifier, which takes it as a parameter."""
    _wide = 10.0
    """Standard deviation of an intercept that is to be found by the data alone: of logits, or logarithms of rates."""
    _reach = 1.5
    """Standard deviation of the logarithm of the prior's width, before the data speak."""

    # What a subclass says.

    def _resolve_likelihood(self) -> Likelihood:
        raise NotImplementedError

    def _unknown_noise(self) -> NoiseBelief | None:
        """What is believed of the noise level before any data, if it is to be learned."""
        return None

    def _judged(self, belief: AnyBelief, prior: AnyBelief) -> tuple[AnyBelief, AnyBelief, Likelihood] | None:
        """What `diagnose` compares, where that is not the belief, its prior and the likelihood as they are."""
        del belief, prior
        return None

    def _refuse_refine(self, visits: int) -> None:
        """Where visits that are counted mean nothing."""
        del visits

    def _known_noise(self) -> float | None:
        """The noise's standard deviation, where it is learned."""
        return None

    def _label_noise(self) -> float | None:
        """Where labels are numbers on a scale of their own: the noise's standard deviation, 0 if that is learned."""
        return None

    def _targets(self, y: ArrayLike, n_rows: int, classes: ArrayLike = None) -> list[Array]:
        """One array of numeric labels per belief, NaN where a row has none; `fold` will check the values."""
        del classes  # only a classifier has any
        return [validation.numeric_labels(y, n_rows, type(self).__name__)]

    # Learning.

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None, refine: int | str | None = "auto"
    ) -> Self:
        """Forget everything, then learn from these rows, whatever their order, as well as can be.

        Parameters
        ----------
        X : array, CSR matrix or dataframe of shape (n_samples, n_features)
            Finite numbers.
        y : array of shape (n_samples,)
            Labels; NaN or None for a row to leave out.
        sample_weight : array of shape (n_samples,), optional
            Each row's likelihood is raised to this power (>= 0).
        refine : int or "auto", default="auto"
            "auto" (or None): scales of the features from all rows, one pass over them in a random order (the same for
            the same ``random_state``, and for None), then for ``covariance="full"`` visits of all rows until
            no weight moves by more than 1e-8 of its standard deviation: the batch optimum, prior included, where the
            order of the rows no longer matters. A ConvergenceWarning says if it does not settle. A likelihood that is
            not log-concave (``df=`` with a ``noise_std``) has no one optimum: its rows are seen once. With forgetting
            or drift they keep their order and are seen once. 0: one pass in the given order, as `partial_fit`. A
            number: afterwards revisit every row so many times, exchanging its part in the posterior for a better one.
            Not with forgetting or drift.

        Returns
        -------
        self
        """
        with validation.whole_or_nothing(self):
            settle = refine is None or refine == "auto"
            visits = (
                0 if settle else checks.whole("refine", refine, least=0, remedy=f"{AUTO!r} visits until it settles")
            )
            self._start_over()
            X = self._begin(X)
            targets = self._targets(y, X.shape[0])
            weight = validation.weights(sample_weight, X.shape[0])
            if weight is not None and not weight.any():
                msg = "sample_weight is zero on every row; fit needs at least one row to learn from"
                raise ValueError(msg)
            if not learned_rows(targets, weight).any():
                msg = (
                    "y has no row with a label and a weight > 0; fit needs at least one row to learn from "
                    "(partial_fit takes unlabelled rows)"
                )
                raise ValueError(msg)
            if settle:
                self._learn_all(X, targets, weight)
            else:
                self._settings.check_refine(visits)
                self._refuse_refine(visits)
                self._learn(X, targets, weight, visits)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> Self:
        """Learn from more rows; however the stream is cut into calls, the posterior is the same.

        Each row is seen once, but for the first 1024 where scales are learned and labels are no quantities: these are
        kept so long and visited again whenever the scales are looked at: see `gaussfold.estimators.early`.

        Parameters are read when learning begins; changing them later is an error. See `fit` for the
        arguments. If anything is wrong with them the model stays exactly as it was.
        """
        return self._absorb(X, y, sample_weight)

    def _absorb(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike, classes: ArrayLike = None) -> Self:
        with validation.whole_or_nothing(self):
            X = self._continue(X)
            targets = self._targets(y, X.shape[0], classes)
            weight = validation.weights(sample_weight, X.shape[0])
            self._learn(X, targets, weight)
        return self

    def forget(self, ticks: float = 1) -> Self:
        """Let so many ticks of the clock pass without an observation: forgetting or drift sets in."""
        self._require_fitted()
        checks.not_negative("ticks", ticks)
        dynamics = self._settings.dynamics
        if dynamics is None:
            msg = "forget(ticks) needs forgetting < 1 or drift_std > 0; this model was told to keep everything"
            raise ValueError(msg)
        for i, belief in enumerate(self._beliefs):
            (self._dynamics(i, per_row=False) or dynamics).tick(belief, ticks)
        if self._coordinates is not None:
            self._coordinates = self._coordinates.aged(gaussians.steps(self._beliefs, dynamics), ticks)
        if isinstance(self._noise, NoiseBank):
            self._noise = self._noise.relax(self._bank(), ticks)
        elif self._noise is not None:
            self._noise = self._noise.relax(float(self.forgetting) ** ticks)
        return self

    def diagnose(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike = None,
        n_samples: int = 2000,
        rng: RandomState = None,
    ) -> Diagnosis | list[Diagnosis]:
        """Ask whether the Gaussian posterior is any good, given all the data it was learned from.

        Draws from the belief are weighted by the exact posterior density; the tail of these weights (PSIS
        k-hat) tells how far apart the two are. ``print(model.diagnose(X, y))`` says it in words. If the
        verdict is poor after one pass, ``fit(X, y)``, which visits rows until the posterior settles, may help.

        Parameters
        ----------
        X, y, sample_weight
            All the data that the model has learned from.
        n_samples : int, default=2000
            Number of draws.
        rng : Generator or int, optional
            Where they come from; the model's own generator by default.

        Returns
        -------
        gaussfold.metrics.Diagnosis, or a list of them, one per class, for classes one-vs-rest
        """
        self._require_fitted()
        if self._settings.dynamics is not None:
            msg = (
                "diagnose compares with the posterior of all rows alike, which forgetting and drift do not "
                "aim at; it needs forgetting=1.0 and drift_std=0.0"
            )
            raise ValueError(msg)
        if self._together > 1:
            msg = f"diagnose: it knows one latent a row, {self._together} classes have several; use multi_class='ovr'"
            raise ValueError(msg)
        X = validation.rows(self, X, reset=False)
        targets, weight = self._targets(y, X.shape[0]), validation.weights(sample_weight, X.shape[0])
        learned = learned_rows(targets, weight)
        if learned.sum() != self.n_observations_:
            msg = (
                f"X, y hold {learned.sum()} rows to learn from, the model has learned {self.n_observations_}; "
                "diagnose needs all the data the posterior was learned from"
            )
            raise ValueError(msg)
        design = self._seen(X[learned])
        kept = None if weight is None else weight[learned]
        count, source = checks.whole("n_samples", n_samples), self._generator(rng)
        found = [
            diagnose(*(self._judged(belief, prior) or (belief, prior, self._likelihood)), design, target[learned],
                     n_samples=count, rng=source, sample_weight=kept, noise_std=self._known_noise())
            for belief, prior, target in zip(self._beliefs, self._priors(), targets, strict=True)
        ]  # fmt: skip
        return found[0] if len(found) == 1 else found

    # Model files: see `gaussfold.store`.

    def state(self) -> dict[str, np.ndarray]:
        """Everything numeric that was learned, as plain named arrays."""
        self._require_fitted()
        return storage.state(self._record())

    def store_header(self) -> dict[str, object]:
        """Parameters, names, classes and the random generator, as JSON can hold them."""
        self._require_fitted()
        return storage.header(self, self._record())

    @classmethod
    def from_store(cls, header: dict[str, object], arrays: dict[str, np.ndarray]) -> Self:
        """Rebuild, bit for bit, the model that `state` and `store_header` describe."""
        self = storage.blank(cls, header, arrays)
        beliefs = storage.restored_beliefs(self, header, arrays)  # before a prior of that many features is made
        self._prepare()
        self._hold_together(storage.classes_together(header))
        if self._together > 1:
            classes.check_kind(beliefs[0], self._settings.prior, self._together, joint=self._joint)
        else:
            self._settings.prior.check_kind(beliefs, banks=self._settings.banks)
        looks_back = bool(self._settings.keeps_rows)
        found = storage.learned(header, arrays, self._parameters, beliefs, looks_back=looks_back)
        schema.equal("noise", found.noise is None, self._noise is None, "as noise_std says whether it is learned")
        self._beliefs, self._lookbacks, self._noise = found.beliefs, found.lookbacks, found.noise
        self._rng, self._loss, self.n_observations_ = found.rng, found.loss, found.n_observations
        schema.equal("scaling", found.coordinates is None, self._ways is None, "as scale and prior_std say")
        self._coordinates = found.coordinates
        self._early = found.early if found.n_observations else self._first_rows()
        return self

    def _record(self) -> storage.Learned:
        return storage.Learned(
            self._parameters, self._beliefs, self._lookbacks, self._noise, self._rng, self._loss, self.n_observations_,
            self._coordinates, self._early,
        )  # fmt: skip

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    # The steps.

    def _start_over(self) -> None:
        for name in _LEARNED:
            self.__dict__.pop(name, None)

    def _begin(self, X: ArrayLike) -> AnyRows:
        """First rows: resolve the parameters, set up everything but the beliefs' number."""
        rows = validation.rows(self, X, reset=True)
        self._prepare()
        return rows

    def _prepare(self) -> None:
        self._settings = settings.resolve(self, self.n_features_in_)
        self._likelihood = self._resolve_likelihood()
        rules.check_defined(self._settings.rule, self._settings.at, self._likelihood)
        self._noise = self._unknown_noise()
        self._ways = self._resolve_ways()
        self._rng = checks.generator(self.random_state)
        self._parameters = storage.parameters(self)
        self._loss = (0.0, 0.0)
        self.n_observations_ = 0

    def _hold_together(self, count: int) -> None:
        """Let one belief hold the weights of so many classes; 1: of one alone."""
        self._together = count
        self._joint = count > 1 and classes.is_joint(self._settings.prior, count, self.class_covariance)
        if self._joint and self._ways is not None:
            self._ways = self._ways._replace(classes=count)

    def _resolve_ways(self) -> Ways | None:
        """How scales and prior are learned; None where they are not."""
        now = self._settings
        if not (now.scale or now.learns_width):
            return None
        noise, mean, std = self._label_noise(), *now.prior.independent()
        return Ways(
            scale=now.scale, learns_width=now.learns_width, intercept=bool(self.fit_intercept), relative=std, mean=mean,
            last_std=self._wide if self.intercept_std is None else float(self.intercept_std),
            targets=noise is not None, noise_std=noise or 0.0, reach=self._reach,
        )  # fmt: skip

    def _continue(self, X: ArrayLike) -> AnyRows:
        """More rows, or the first ones."""
        if not self._beliefs:
            return self._begin(X)
        now = vars(self)
        for name, value in self._parameters.items():
            if now[name] is not value and not storage.same(now[name], value):
                msg = (
                    f"{name}={now[name]!r} was {value!r} when learning began; "
                    "start over with fit, or use a new estimator"
                )
                raise ValueError(msg)
        return validation.rows(self, X, reset=False)
