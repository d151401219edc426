"""What the streaming estimators share: the way from scikit-learn's conventions to `fold` and back.

No mathematics here: rows and parameters are checked (`validation`, `settings`), `fold` does the work.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.utils import Tags

from gaussfold import checks, rules, schema
from gaussfold.beliefs.bank.belief import Bank
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.estimators import settings, storage, validation
from gaussfold.estimators.folded import Folded, FoldOptions, learned_rows
from gaussfold.estimators.noise import NoiseBelief
from gaussfold.estimators.noise_bank import NoiseBank
from gaussfold.estimators.pace import OwnPace
from gaussfold.estimators.parameters import RandomState
from gaussfold.estimators.priors import AnyBelief
from gaussfold.estimators.readout import Readout
from gaussfold.folding import FoldResult, fold
from gaussfold.lookback import Lookback
from gaussfold.metrics import Diagnosis, diagnose
from gaussfold.protocols import Likelihood
from gaussfold.rows import AnyRows, Block, Rows
from gaussfold.sweeping import sweep
from gaussfold.types import Array, ArrayLike

_LEARNED = (
    "_beliefs", "_likelihood", "_lookbacks", "_loss", "_noise", "_parameters", "_rng", "_settings",
    "classes_", "feature_names_in_", "n_features_in_", "n_observations_",
)  # fmt: skip


class StreamingEstimator(Readout):
    """One Gaussian belief over the weights (or one per class), folded forward row by row."""

    # Set by the first call that learns; `_LEARNED` lists them for `fit`, which forgets them.
    _likelihood: Likelihood
    _lookbacks: list[Lookback]
    _parameters: dict[str, ArrayLike]
    _settings: settings.Settings
    n_observations_: int

    # What a subclass says.

    def _resolve_likelihood(self) -> Likelihood:
        raise NotImplementedError

    def _unknown_noise(self) -> NoiseBelief | None:
        """What is believed of the noise level before any data, if it is to be learned."""
        return None

    def _targets(self, y: ArrayLike, n_rows: int, classes: ArrayLike = None) -> list[Array]:
        """One array of numeric labels per belief, NaN where a row has none; `fold` will check the values."""
        del classes  # only a classifier has any
        return [validation.numeric_labels(y, n_rows, type(self).__name__)]

    def _score(self, folded: Folded) -> Array:
        """Log predictive density of each learned row before it was learned."""
        return folded.log_predictive()

    # Learning.

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None, refine: int = 0) -> Self:
        """Forget everything, then learn from these rows in one pass.

        Parameters
        ----------
        X : array, CSR matrix or dataframe of shape (n_samples, n_features)
            Finite numbers.
        y : array of shape (n_samples,)
            Labels; NaN or None for a row to leave out.
        sample_weight : array of shape (n_samples,), optional
            Each row's likelihood is raised to this power (>= 0).
        refine : int, default=0
            Afterwards revisit every row so many times, exchanging its part in the posterior for a better
            one; this takes the one-pass answer towards the batch optimum, where the order of the rows
            no longer matters. Not with forgetting or drift.

        Returns
        -------
        self
        """
        with validation.whole_or_nothing(self):
            checks.whole("refine", refine, least=0)
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
            self._settings.check_refine(refine)
            self._learn(X, targets, weight, refine)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> Self:
        """Learn from more rows; however the stream is cut into calls, the posterior is the same.

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
        for belief in self._beliefs:
            self._belief_dynamics(dynamics).tick(belief, ticks)
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
        verdict is poor, ``fit(X, y, refine=10)`` may help.

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
        gaussfold.metrics.Diagnosis, or a list of them, one per class, for more than two classes
        """
        self._require_fitted()
        if self._settings.dynamics is not None:
            msg = (
                "diagnose compares with the posterior of all rows alike, which forgetting and drift do not "
                "aim at; it needs forgetting=1.0 and drift_std=0.0"
            )
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
        design = validation.with_intercept(X[learned], self.fit_intercept)
        kept = None if weight is None else weight[learned]
        count, source = checks.whole("n_samples", n_samples), self._generator(rng)
        prior = self._settings.prior.belief()
        found = [
            diagnose(belief, prior, self._likelihood, design, target[learned], n_samples=count, rng=source,
                     sample_weight=kept)
            for belief, target in zip(self._beliefs, targets, strict=True)
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
        self._check_kind(beliefs)
        looks_back = bool(self._settings.second_look)
        found = storage.learned(header, arrays, self._parameters, beliefs, looks_back=looks_back)
        schema.equal("noise", found.noise is None, self._noise is None, "as noise_std says whether it is learned")
        self._beliefs, self._lookbacks, self._noise = found.beliefs, found.lookbacks, found.noise
        self._rng, self._loss, self.n_observations_ = found.rng, found.loss, found.n_observations
        return self

    def _check_kind(self, beliefs: list[AnyBelief]) -> None:
        """Refuse beliefs, of a model file, that are not what the parameters say."""
        self._settings.prior.check_kind(beliefs, banks=self._settings.banks)

    def _record(self) -> storage.Learned:
        return storage.Learned(
            self._parameters, self._beliefs, self._lookbacks, self._noise, self._rng, self._loss, self.n_observations_
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    # The steps.

    def _belief_dynamics(self, dynamics: Forgetting | RandomWalk | OwnPace) -> Forgetting | RandomWalk | OwnPace:
        """What ticks over one of the beliefs."""
        return dynamics

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
        self._rng = settings.generator(self.random_state)
        self._parameters = storage.parameters(self)
        self._loss = (0.0, 0.0)
        self.n_observations_ = 0

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

    def _learn(self, X: AnyRows, targets: list[Array], weight: Array | None, refine: int = 0) -> None:
        """Fold the rows in. Everything has been checked; from here on only `fold` could fail."""
        if not self._beliefs:
            beliefs = self._first_beliefs(targets)
            if isinstance(self._noise, NoiseBelief) and isinstance(beliefs[0], Bank):
                self._noise = NoiseBank.start(self._noise, beliefs[0])
            self._lookbacks = [Lookback(self._settings.second_look) for _ in targets if self._settings.second_look]
        elif len(targets) == 1:
            beliefs = list(self._beliefs)
        else:  # if the second class failed, the first must not have moved
            beliefs = [belief.copy() for belief in self._beliefs]
        learned = learned_rows(targets, weight)
        if learned.any():
            options = FoldOptions(
                rule=self._settings.rule,
                at=self._settings.at,
                sample_weight=weight,
                block_size=self._settings.block_size,
            )
            counts = np.ones(np.count_nonzero(learned)) if weight is None else weight[learned]  # room before the deed
            results = self._fold(beliefs, validation.with_intercept(X, self.fit_intercept), targets, options, refine)
            self._beliefs = beliefs  # which a score may weigh; nothing can fail any more
            score = self._score(Folded(results, targets, learned, counts))
            self._loss = (self._loss[0] - float(counts @ score), self._loss[1] + float(counts.sum()))
            self.n_observations_ += len(counts)
        else:  # nothing is learned, to the last bit
            self._check_targets(targets)
        self._beliefs = beliefs

    def _check_targets(self, targets: list[Array]) -> None:
        """Refuse labels that the likelihood cannot explain, where no fold does."""
        self._likelihood.check_labels(targets[0])

    def _first_beliefs(self, targets: list[Array]) -> list[AnyBelief]:
        """Beliefs that have seen nothing, one for each array of labels."""
        return [self._settings.start() for _ in targets]

    def _fold(
        self,
        beliefs: list[AnyBelief],
        design: Rows | Block,
        targets: list[Array],
        options: FoldOptions,
        refine: int,
    ) -> list[FoldResult]:
        """Fold the rows into every belief; what was known of each row before it was learned."""
        heads = list(zip(beliefs, targets, strict=True))
        if self._lookbacks:
            memories = [memory.copy() for memory in self._lookbacks]
            results = [
                memory.fold(belief, self._likelihood, design, target, **options)
                for memory, (belief, target) in zip(memories, heads, strict=True)
            ]
            self._lookbacks = memories
        else:
            dynamics = self._settings.fold_dynamics
            results = [
                fold(belief, self._likelihood, design, target, dynamics=dynamics, **options) for belief, target in heads
            ]
        if refine:
            for (belief, target), sites in zip(heads, results, strict=True):
                sweep(belief, self._likelihood, design, target, sites, n_sweeps=refine, **options)
        return results
