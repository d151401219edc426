"""Parameters at the door: checked in one place, names resolved to objects once, then never again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gaussfold import checks, rules
from gaussfold.beliefs.diagonal.base import DiagonalBelief
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.coupling import resolve_coupling
from gaussfold.beliefs.lowrank.options import CALIBRATED
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.estimators import ensemble
from gaussfold.estimators.pace import OwnPace
from gaussfold.estimators.parameters import RandomState, StreamingParameters
from gaussfold.estimators.priors import AUTO, RULES, SHAPES, AnyBelief, Prior, factors
from gaussfold.rules.at import At
from gaussfold.rules.base import StreamRule
from gaussfold.types import Array, ArrayLike

_NO_SECOND_VISIT = {
    "diagonal": "a diagonal belief drops part of every site",
    "lowrank": "a low-rank posterior cannot take a row's part out again",
}
"""Why a belief of this shape cannot visit a row again."""
WIDEST = 20_000
"""Features up to which there is room for a covariance matrix or two."""
NOISES = 10.0
"""Standard deviation of the weights, in units of a noise that is learned, where it is not learned itself."""


@dataclass(frozen=True)
class Settings:
    """What the parameters of an estimator mean, for a given number of features."""

    rule: StreamRule
    at: At
    prior: Prior
    dynamics: Forgetting | RandomWalk | OwnPace | None
    ticks_per_row: bool
    block_size: int | None
    second_look: int
    scale: bool
    """Whether features are standardised as they come."""
    learns_width: bool
    """Whether the prior's width is found by its evidence."""
    settles: bool
    """Whether `fit` can visit rows until the posterior settles."""
    copies: int = 1
    """Of a diagonal belief, which start apart: see `gaussfold.estimators.ensemble`."""

    @property
    def keeps_rows(self) -> int:
        """How many rows are kept beside the belief for a second look; a diagonal one keeps them itself."""
        return self.second_look if self.prior.covariance == "full" else 0

    @property
    def banks(self) -> bool:
        """Whether beliefs are banks, which know by themselves how they move."""
        return isinstance(self.dynamics, OwnPace) or self.copies > 1

    @property
    def fold_dynamics(self) -> Forgetting | RandomWalk | None:
        """What a fold is told; a bank knows by itself."""
        return None if isinstance(self.dynamics, OwnPace) or self.banks or not self.ticks_per_row else self.dynamics

    def start(self) -> AnyBelief:
        """A new belief that has seen nothing: the prior, or a bank of copies of it."""
        prior = self.prior.belief()
        if isinstance(prior, DiagonalBelief):
            prior.look_again(self.second_look)
        if isinstance(self.dynamics, OwnPace):
            return self.dynamics.bank(prior)
        if self.copies > 1 and isinstance(prior, DiagonalGaussian):
            return ensemble.spread(prior, self.copies, self.dynamics, per_row=self.ticks_per_row)
        return prior

    def check_refine(self, refine: int) -> None:
        """Refuse to visit rows again where that is not defined."""
        if not refine:
            return
        check_second_visits("refine", refine, self.prior.covariance)
        if self.second_look:
            msg = f"refine={refine} and second_look={self.second_look}: both look again, use one"
            raise ValueError(msg)
        if self.dynamics is not None and self.ticks_per_row:
            msg = (
                f"refine={refine} needs forgetting=1.0 and drift_std=0.0: "
                "a drifting posterior has no one optimum for all rows"
            )
            raise ValueError(msg)


def resolve(model: StreamingParameters, n_features: int) -> Settings:
    """Check every parameter that the estimators share and resolve it."""
    checks.one_of("covariance", model.covariance, SHAPES)
    checks.one_of("tick", model.tick, ("observation", "clock"))
    checks.flag("fit_intercept", model.fit_intercept)
    scale = checks.flag("scale", model.scale) and model.covariance == "full"
    if model.covariance == "full" and n_features > WIDEST:
        msg = (
            f"covariance='full' with {n_features} features needs {8e-9 * n_features**2:.1f} GB for each matrix; "
            "give covariance='diagonal', for sparse rows of any width, or 'lowrank'"
        )
        raise ValueError(msg)
    block_size = _block_size(model)
    prior = _prior(model, n_features, block_size)
    return Settings(
        rule=rules.resolve(RULES[model.covariance] if model.rule is None else model.rule),
        at=rules.resolve_at(model.at),
        prior=prior,
        dynamics=(dynamics := _dynamics(model, prior)),
        ticks_per_row=(ticks := model.tick == "observation"),
        block_size=block_size,
        second_look=(rows := _second_look(model)),
        scale=scale,
        learns_width=_is_auto(model.prior_std) and model.covariance == "full",
        settles=model.covariance == "full" and not rows and (dynamics is None or not ticks),
        copies=_copies(model, prior),
    )


def _block_size(model: StreamingParameters) -> int | None:
    """Rows per block inside a fold, as asked for; None leaves it to the belief, as a loaded one has its own."""
    block_size = None if model.block_size is None else checks.whole("block_size", model.block_size)
    moves_per_row = model.tick == "observation" and (model.forgetting != 1 or model.drift_std != 0)
    one = model.covariance == "lowrank" and moves_per_row and block_size is None
    return 1 if one else block_size


def _rank(model: StreamingParameters, dim: int) -> int:
    """Factors of a low-rank posterior, which must fit."""
    rank = factors(model.rank, dim)
    if model.covariance == "lowrank":
        fewer = "give covariance='diagonal', for sparse rows of any width, or a smaller rank"
        checks.room("weights", dim, dim * (rank + 2), fewer)
        if rank > dim:
            msg = f"rank={rank}: more factors than the {dim} weights; 1 to {dim} are allowed"
            raise ValueError(msg)
    return rank


def _prior(model: StreamingParameters, n_features: int, block_size: int | None) -> Prior:
    """Mean and standard deviation of each weight, the intercept's last."""
    coupling = resolve_coupling(model.coupling)
    dim = n_features + int(model.fit_intercept)
    rank = _rank(model, dim)
    mean, std = per_feature("prior_mean", model.prior_mean, n_features), _prior_std(model, n_features)
    last = None if model.intercept_std is None else checks.positive("intercept_std", model.intercept_std)
    if model.fit_intercept:
        mean = np.append(mean, 0.0) if mean.ndim else mean
        std = np.append(std, 1.0) if np.ndim(std) else std
    last = last if model.fit_intercept else None
    still = model.forgetting == 1 and model.drift_std == 0
    return Prior(model.covariance, dim, mean, std, coupling, last, rank, block_size, _projection(model), still)


def _projection(model: StreamingParameters) -> str:
    """Of a low-rank belief: a learned noise level has the scale of all variances, and two must not learn it."""
    return "marginal" if vars(model).get("noise_std") == "learn" else CALIBRATED


def _prior_std(model: StreamingParameters, n_features: int) -> Array | str:
    if _is_auto(model.prior_std):
        noise_is_learned = isinstance(getattr(model, "noise_std", None), str)
        alone = (
            not (noise_is_learned or _is_auto(model.drift_std) or _is_auto(model.forgetting)) and model.ensemble == 1
        )
        if model.covariance == "full":  # where it starts from
            return np.asarray(1.0)
        if model.covariance == "diagonal" and alone:
            return AUTO
        return np.asarray(NOISES if noise_is_learned else 1.0)
    std = per_feature("prior_std", model.prior_std, n_features)
    checks.scales("prior_std", std)
    return std


def _second_look(model: StreamingParameters) -> int:
    rows = checks.whole("second_look", model.second_look, least=0)
    if not rows:
        return 0
    if model.covariance != "diagonal":
        check_second_visits("second_look", rows, model.covariance)
    elif model.ensemble != 1:
        msg = f"second_look={rows} and ensemble={model.ensemble}: copies visit each row once; leave one of them out"
        raise ValueError(msg)
    if model.forgetting != 1 or model.drift_std != 0:
        msg = f"second_look={rows} needs forgetting=1.0 and drift_std=0.0: a row that has faded has no site left"
        raise ValueError(msg)
    return rows


def _copies(model: StreamingParameters, prior: Prior) -> int:
    count = checks.whole("ensemble", model.ensemble, remedy="1 is a single belief, 8 give honest error bars")
    if count > 1:
        if prior.covariance != "diagonal":
            msg = f"ensemble={count} needs covariance='diagonal': others know how weights go together; leave ensemble=1"
            raise ValueError(msg)
        for name, value in (("drift_std", model.drift_std), ("forgetting", model.forgetting)):
            if _is_auto(value):
                msg = f"ensemble={count} and {name}='auto' are both mixtures of beliefs: give {name} a number"
                raise ValueError(msg)
    return count


def check_second_visits(name: str, value: int, covariance: str) -> None:
    """Refuse to visit a row again where its site is no longer all there."""
    if covariance in _NO_SECOND_VISIT:
        msg = f"{name}={value} needs covariance='full': {_NO_SECOND_VISIT[covariance]}"
        raise ValueError(msg)


def _dynamics(model: StreamingParameters, prior: Prior) -> Forgetting | RandomWalk | OwnPace | None:
    keeps = "1 keeps everything, 0.999 remembers about 1000 rows, 'auto' finds out"
    still = "0 lets the weights stand still, 'auto' finds out"
    given = 1.0 if _is_auto(model.forgetting) else model.forgetting
    forgetting = checks.between("forgetting", given, 0, 1, "(]", remedy=keeps)
    drift = 0.0 if _is_auto(model.drift_std) else checks.not_negative("drift_std", model.drift_std, remedy=still)
    if model.forgetting != 1 and model.drift_std != 0:
        msg = (
            f"forgetting={model.forgetting!r} and drift_std={model.drift_std!r} are alternatives: "
            "leave forgetting=1.0 or drift_std=0.0"
        )
        raise ValueError(msg)
    for name, value in (("drift_std", model.drift_std), ("forgetting", model.forgetting)):
        if _is_auto(value):
            return OwnPace(name, model.tick == "observation")
    if forgetting < 1:
        return Forgetting(forgetting, prior.belief())
    return RandomWalk(drift) if drift > 0 else None


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == AUTO


def per_feature(name: str, value: ArrayLike, n_features: int) -> Array:
    """One finite number for all features (0-d), or one each."""
    try:
        plain = np.asarray(value)  # None would be NaN, True would be 1
        array = None if plain.dtype == bool or value is None else plain.astype(np.float64)
    except (ValueError, TypeError):
        array = None
    if array is None:
        auto = "'auto', or " if name == "prior_std" else ""
        msg = (
            f"{name}={value!r}: a number, or one per feature, is needed; give {auto}{name}=1.0, or {n_features} of them"
        )
        raise ValueError(msg)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n_features):
        msg = f"{name} has shape {array.shape}; it must be one number or one per feature: shape ({n_features},)"
        raise ValueError(msg)
    checks.finite_entries(name, array)
    return array


def shuffler(random_state: RandomState, own: np.random.Generator) -> np.random.Generator:
    """What puts rows in a random order: the same one for the same seed, and for none."""
    if random_state is None:
        return np.random.default_rng(0)
    return (
        own if isinstance(random_state, np.random.Generator | np.random.RandomState) else checks.generator(random_state)
    )
