"""More than two classes learned together: the half of the classifier that joins `classes` to the streaming steps."""

from __future__ import annotations

from typing import cast

import numpy as np

from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.estimators import classes as softmax
from gaussfold.estimators.folded import FoldOptions
from gaussfold.estimators.pace import OwnPace
from gaussfold.estimators.parameters import RandomState
from gaussfold.estimators.priors import AnyBelief
from gaussfold.estimators.streaming import StreamingEstimator
from gaussfold.folding import FoldResult
from gaussfold.likelihoods.bernoulli import Expectation
from gaussfold.likelihoods.links import Name as Link
from gaussfold.metrics import Diagnosis
from gaussfold.rows import Block, Rows
from gaussfold.types import Array, ArrayLike, Moments


class Together(StreamingEstimator):
    """Where a softmax has one belief over the weights of all classes, and where it has not, the steps as they are."""

    class_covariance: str
    classes_: np.ndarray
    ensemble: int
    expectation: Expectation
    link: Link
    multi_class: str

    def diagnose(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike = None,
        n_samples: int = 2000,
        rng: RandomState = None,
    ) -> Diagnosis | list[Diagnosis]:
        """As for every streaming estimator: one for two classes, one for each of several that are one-vs-rest."""
        self._require_fitted()
        if self._is_softmax():
            msg = (
                f"diagnose: it knows one latent a row, {len(self.classes_)} classes have several; use multi_class='ovr'"
            )
            raise ValueError(msg)
        return super().diagnose(X, y, sample_weight, n_samples, rng)

    def _is_softmax(self) -> bool:
        """Whether more than two classes are learned together."""
        self._require_begun()
        if len(self.classes_) == 2:
            return False
        return len(self._beliefs) == 1 if self._beliefs else softmax.is_softmax(self.multi_class, self._ovr_alone())

    def _ovr_alone(self) -> list[str]:
        """What was asked for that only one-vs-rest has."""
        rule_is_vi = self.rule is None or (self._settings.rule.takes_classes and self._settings.at.is_implicit)
        asked = {
            f"link={self.link!r}": self.link != "logit",
            f"expectation={self.expectation!r}": self.expectation != "quadrature",
            f"rule={self.rule!r}": not rule_is_vi,
            f"at={self.at!r}": not self._settings.at.is_implicit,
            f"second_look={self.second_look!r}": bool(self._settings.second_look),
            f"ensemble={self.ensemble!r}": self.ensemble != 1,
            f"prior_std={self.prior_std!r}": isinstance(self._settings.prior.std, str),
            f"drift_std={self.drift_std!r}, forgetting={self.forgetting!r}": isinstance(
                self._settings.dynamics, OwnPace
            ),
        }
        return [words for words, is_so in asked.items() if is_so]

    def _class_latents(self, X: ArrayLike) -> tuple[Array, Array]:
        return softmax.latents(self._class_belief(), self._design(X), len(self.classes_))

    def _class_belief(self) -> softmax.ClassBelief:
        return cast("softmax.ClassBelief", self._beliefs[0])

    def _first_beliefs(self, targets: list[Array]) -> list[AnyBelief]:
        if not self._is_softmax():
            return super()._first_beliefs(targets)
        return [softmax.start(self._settings.prior, len(self.classes_), self.class_covariance)]

    def _check_kind(self, beliefs: list[AnyBelief]) -> None:
        if len(self.classes_) > 2 and len(beliefs) == 1:
            softmax.check_kind(beliefs[0], self._settings.prior, len(self.classes_), self.class_covariance)
        else:
            super()._check_kind(beliefs)

    def _check_targets(self, targets: list[Array]) -> None:
        if not self._is_softmax():  # else they are places in classes_
            super()._check_targets(targets)

    def _belief_dynamics(self, dynamics: Forgetting | RandomWalk | OwnPace) -> Forgetting | RandomWalk | OwnPace:
        if not self._is_softmax():
            return dynamics
        return softmax.dynamics(self._settings, len(self.classes_), self.class_covariance) or dynamics

    def _fold(
        self,
        beliefs: list[AnyBelief],
        design: Rows | Block,
        targets: list[Array],
        options: FoldOptions,
        refine: int,
    ) -> list[FoldResult]:
        if not self._is_softmax():
            return super()._fold(beliefs, design, targets, options, refine)
        count = len(self.classes_)
        moving = (
            softmax.dynamics(self._settings, count, self.class_covariance) if self._settings.ticks_per_row else None
        )
        belief = cast("softmax.ClassBelief", beliefs[0])
        return [softmax.learn(belief, design, targets[0], options["sample_weight"], moving, count, refine)]

    def _latent(self, X: ArrayLike) -> list[Moments]:
        if not self._is_softmax():
            return super()._latent(X)
        return softmax.marginals(self._class_belief(), self._design(X), len(self.classes_))

    def _draws(self, n_samples: int, rng: np.random.Generator) -> list[Array]:
        if not self._is_softmax():
            return super()._draws(n_samples, rng)
        return softmax.draws(self._class_belief(), len(self.classes_), n_samples, rng)

    def _weights(self) -> tuple[Array, Array]:
        if not self._is_softmax():
            return super()._weights()
        belief, count = self._class_belief(), len(self.classes_)
        return belief.mean.reshape(count, -1), np.sqrt(belief.variance()).reshape(count, -1)

    def _require_begun(self) -> None:
        if "classes_" not in vars(self):
            self._require_fitted()
