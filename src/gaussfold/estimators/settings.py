"""Parameters at the door: checked in one place, names resolved to objects once, then never again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gaussfold import checks, rules
from gaussfold.beliefs.diagonal.coupling import Coupling, Joint, Marginal, resolve_coupling
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.estimators.making import AUTO, RULES, SHAPES, lowrank_block, make_belief
from gaussfold.types import Array


@dataclass(frozen=True)
class Settings:
    """What the parameters of an estimator mean, for a given number of features."""

    rule: Any
    at: Any
    prior: Callable[[], Any]
    """Builds the belief before any data; on demand, so that it costs no memory afterwards."""
    dynamics: Any
    ticks_per_row: bool
    block_size: int | None
    second_look: int
    covariance: str


def resolve(model: Any, n_features: int) -> Settings:
    """Check every parameter that the estimators share and resolve it."""
    checks.one_of("covariance", model.covariance, SHAPES)
    rank = checks.whole("rank", model.rank)
    if not isinstance(model.coupling, Joint | Marginal):
        checks.one_of("coupling", model.coupling, ("marginal", "joint"))
    checks.one_of("tick", model.tick, ("observation", "clock"))
    checks.flag("fit_intercept", model.fit_intercept)
    if model.block_size is not None:
        checks.whole("block_size", model.block_size)
    block_size = None if model.block_size is None else int(model.block_size)
    if model.covariance == "lowrank":
        dim = n_features + int(model.fit_intercept)
        if rank > dim:
            msg = f"rank={rank}: more factors than the {dim} weights; 1 to {dim} are allowed"
            raise ValueError(msg)
        moving = model.tick == "observation" and (model.forgetting != 1 or model.drift_std != 0)
        block_size = 1 if moving and block_size is None else lowrank_block(rank, block_size)
    prior = _prior(model, n_features, block_size)
    return Settings(
        rule=rules.resolve(RULES[model.covariance] if model.rule is None else model.rule),
        at=rules.resolve_at(model.at),
        prior=prior,
        dynamics=_dynamics(model, prior),
        ticks_per_row=model.tick == "observation",
        block_size=block_size,
        second_look=_second_look(model),
        covariance=model.covariance,
    )


def _prior(model: Any, n_features: int, block_size: int | None) -> Callable[[], Any]:
    """What builds the prior: mean and standard deviation of each weight, the intercept's last."""
    coupling: Coupling = resolve_coupling(model.coupling)
    mean = per_feature("prior_mean", model.prior_mean, n_features)
    std: Any = AUTO
    if not (isinstance(model.prior_std, str) and model.prior_std == AUTO):
        std = per_feature("prior_std", model.prior_std, n_features)
        checks.positive_entries("prior_std", std)
    elif model.covariance != "diagonal":
        msg = f"prior_std='auto' needs covariance='diagonal', got covariance={model.covariance!r}; give a number"
        raise ValueError(msg)
    last = None
    if model.intercept_std is not None:
        last = checks.positive("intercept_std", model.intercept_std)
    if model.fit_intercept:
        if np.ndim(mean):
            mean = np.append(mean, 0.0)
        if np.ndim(std):
            std = np.append(std, 1.0)
    dim = n_features + int(model.fit_intercept)
    last = last if model.fit_intercept else None
    return partial(make_belief, model.covariance, dim, mean, std, coupling, last, int(model.rank), block_size)


def _second_look(model: Any) -> int:
    rows = checks.whole("second_look", model.second_look, least=0)
    if rows and model.covariance == "diagonal":
        msg = f"second_look={rows} needs covariance='full': a diagonal belief drops part of every site"
        raise ValueError(msg)
    if rows and (model.forgetting != 1 or model.drift_std != 0):
        msg = f"second_look={rows} needs forgetting=1.0 and drift_std=0.0: a row that has faded has no site left"
        raise ValueError(msg)
    if rows and model.covariance == "lowrank":
        msg = f"second_look={rows} needs covariance='full': a low-rank posterior cannot take a row's part out again"
        raise ValueError(msg)
    return rows


def _dynamics(model: Any, prior: Callable[[], Any]) -> Any:
    remedy = "1 keeps everything, 0.999 remembers about 1000 rows"
    forgetting = checks.between("forgetting", model.forgetting, 0, 1, "(]", remedy=remedy)
    drift = checks.not_negative("drift_std", model.drift_std, remedy="0 lets the weights stand still")
    if forgetting < 1 and drift > 0:
        msg = (
            f"forgetting={forgetting!r} and drift_std={drift!r} are alternatives: leave forgetting=1.0 or drift_std=0.0"
        )
        raise ValueError(msg)
    if forgetting < 1:
        return Forgetting(forgetting, prior())
    return RandomWalk(drift) if drift > 0 else None


def per_feature(name: str, value: Any, n_features: int) -> Array:
    """One finite number for all features (0-d), or one each."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (ValueError, TypeError):
        msg = f"{name}={value!r}: a number, or one per feature, is needed"
        raise ValueError(msg) from None
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n_features):
        msg = f"{name} has shape {array.shape}; it must be one number or one per feature: shape ({n_features},)"
        raise ValueError(msg)
    checks.finite_entries(name, array)
    return array


def generator(random_state: Any, name: str = "random_state") -> np.random.Generator:
    """Make a NumPy generator from None, a seed, a RandomState or a generator (which is used as it is)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(checks.whole(name, random_state, least=0))
