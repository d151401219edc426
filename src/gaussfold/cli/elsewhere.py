"""Options of Vowpal Wabbit that mean nothing here, and what to do instead. Only Typer is imported: --help is quick."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from typer import Option

_option = partial(Option, hidden=True)
_STEPS = "nothing is stepped by a rate: each weight has a variance of its own, which shrinks as it is seen"
_CACHE = "rows are parsed as fast as they are learned, and nothing is cached"
_PRIOR = "a prior draws weights to 0: --prior-std says how far they may be from it"
_PAIRS = "-q multiplies namespaces: 'ab' by first letters, '::' all pairs, 'site,ad' by name"
_RANGE = "numbers are kept within the labels seen so far; --label-range none lets them go"
_INSTEAD = {
    "learning_rate": "nothing is stepped by a rate: how far a weight may go is --prior-std, how long rows count "
    "--forgetting",
    "power_t": "steps shrink as the posterior narrows; --forgetting keeps it from narrowing for good",
    "loss_function": "--likelihood says what labels are: logit, probit, gaussian or poisson",
    "cache": _CACHE,
    "kill_cache": "there is no cache that could be stale",
    "cache_file": _CACHE,
    "initial_t": _STEPS,
    "adaptive": _STEPS,
    "invariant": _STEPS,
    "sgd": _STEPS,
    "ftrl": _STEPS,
    "coin": _STEPS,
    "normalized": "features are scaled as they come; --scale none leaves them as they are",
    "bfgs": "one pass is all there is to do; --second-look N visits rows once more",
    "l1": _PRIOR,
    "l2": _PRIOR,
    "holdout_off": "nothing is held out: every row is predicted before it is learned",
    "save_resume": "every model file goes on exactly, by -i or --resume",
    "invert_hash": "--keep-names, then 'gaussfold inspect MODEL', shows weights by name",
    "audit": "--keep-names, then 'gaussfold inspect MODEL', shows weights by name",
    "readable_model": "'gaussfold inspect MODEL' shows what it holds",
    "interactions": _PAIRS,
    "quadratic": _PAIRS,
    "random_seed": "nothing is drawn at random",
    "min_prediction": _RANGE,
    "max_prediction": _RANGE,
}
"""What to do instead."""
_SHORT = {"learning_rate": "-l", "cache": "-c", "kill_cache": "-k"}


@dataclass(frozen=True)
class Elsewhere:
    """What the fingers of a Vowpal Wabbit user type: refused, with what to do instead."""

    learning_rate: Annotated[str | None, _option("-l", "--learning_rate")] = None
    power_t: Annotated[str | None, _option("--power_t")] = None
    loss_function: Annotated[str | None, _option("--loss_function")] = None
    cache: Annotated[bool, _option("-c", "--cache")] = False
    kill_cache: Annotated[bool, _option("-k", "--kill_cache")] = False
    cache_file: Annotated[str | None, _option("--cache_file")] = None
    initial_t: Annotated[str | None, _option("--initial_t")] = None
    adaptive: Annotated[bool, _option("--adaptive")] = False
    invariant: Annotated[bool, _option("--invariant")] = False
    sgd: Annotated[bool, _option("--sgd")] = False
    ftrl: Annotated[bool, _option("--ftrl")] = False
    coin: Annotated[bool, _option("--coin")] = False
    normalized: Annotated[bool, _option("--normalized")] = False
    bfgs: Annotated[bool, _option("--bfgs")] = False
    l1: Annotated[str | None, _option("--l1")] = None
    l2: Annotated[str | None, _option("--l2")] = None
    holdout_off: Annotated[bool, _option("--holdout_off")] = False
    save_resume: Annotated[bool, _option("--save_resume")] = False
    invert_hash: Annotated[str | None, _option("--invert_hash")] = None
    audit: Annotated[bool, _option("--audit")] = False
    readable_model: Annotated[str | None, _option("--readable_model")] = None
    interactions: Annotated[str | None, _option("--interactions")] = None
    quadratic: Annotated[str | None, _option("--quadratic")] = None
    random_seed: Annotated[str | None, _option("--random_seed")] = None
    min_prediction: Annotated[str | None, _option("--min_prediction")] = None
    max_prediction: Annotated[str | None, _option("--max_prediction")] = None

    def refuse(self) -> None:
        """Say of the first that was given what to do instead."""
        for name, value in vars(self).items():
            if value:
                msg = f"{_SHORT.get(name, f'--{name}')} is Vowpal Wabbit's: {_INSTEAD[name]}; leave it out"
                raise ValueError(msg)
