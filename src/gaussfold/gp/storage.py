"""A Gaussian process as named arrays and a JSON header, and back (see `gaussfold.store`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from gaussfold import registry
from gaussfold.checks import one_of, whole
from gaussfold.gp import checks
from gaussfold.gp.extras import Extras
from gaussfold.gp.origin import Anchor
from gaussfold.gp.sparse import Tied
from gaussfold.gp.times import UNITS, Clock
from gaussfold.gp.weighted import weights_of
from gaussfold.likelihoods import as_vector
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.schema import Part, equal, refuse, together
from gaussfold.schema import check as check_parts
from gaussfold.store.codecs import decode_generator, encode_rng
from gaussfold.types import Sites

if TYPE_CHECKING:
    from gaussfold.gp.inference import FitResult
    from gaussfold.gp.model import GaussianProcess

Model = TypeVar("Model", bound="GaussianProcess")

DATA = (
    Part("X", ("N", "inputs"), "double"),
    Part("Y", ("N", "outputs"), "double", gaps=True),
    Part("precision", ("N", "D", "D"), "double", symmetric=True),
    Part("shift", ("N", "D"), "double"),
    Part("offset", ("N", "D"), "double", optional=True),
    Part("weights", ("N",), "double", optional=True),
    Part("mixing", ("D", "Q"), "double", optional=True),
    Part("Z", ("M", "inputs"), "double", optional=True),
    Part("base.precision", ("DM", "DM"), "double", symmetric=True, optional=True),
    Part("base.shift", ("DM",), "double", optional=True),
    Part("anchor.mean", ("S",), "double", optional=True),
    Part("anchor.cov", ("S", "S"), "double", symmetric=True, optional=True),
    Part("memory0", ("N", "K", "K"), "double", optional=True),
    Part("memory1", ("N", "K"), "double", optional=True),
    Part("memory2", ("N", "K"), "double", optional=True),
)
"""What a model file holds of a process that has seen data."""
TIED = (Part("tied.precision", ("DM", "DM"), "double", symmetric=True), Part("tied.shift", ("DM",), "double"))
"""And of one that learned in batches."""


class Past(NamedTuple):
    """A stream's anchor, the points of its window, and whether those before are gone."""

    anchor: Anchor
    window: int
    dropped: bool


_OPTIONS = ("structure", "damping", "max_iter", "tol", "start_precision", "batch_size", "time_unit", "verbose")


def header(
    model: GaussianProcess, rng: np.random.Generator, past: tuple[Anchor, int, bool] | None
) -> dict[str, object]:
    """Everything but the arrays."""
    given = vars(model)
    described: dict[str, object] = {
        "covariances": registry.encode(model.covariances),
        "likelihood": registry.encode(model.likelihood),
        "rule": registry.encode(model.rule),
        "curvature": registry.encode(model.curvature),
        "cubature": registry.encode(model.cubature),
        "options": {name: given[name] for name in _OPTIONS},
        "rng": encode_rng(rng),
        "inducing": int(model.inducing) if isinstance(model.inducing, int | np.integer) else None,
    }
    if model.means is not None:
        described["mean"] = registry.encode(model.means)
    if model.clock_ is not None:
        described["clock"] = [part for part in model.clock_ if part is not None]
    if past is not None:
        described["stream"] = [past[0].time, past[1], past[2]]
    if "result_" in given:
        described["result"] = list(model.result_)
    return described


def _left(model: GaussianProcess, past: tuple[Anchor, int, bool] | None) -> dict[str, np.ndarray]:
    """What streams keep of rows that have left."""
    arrays = {} if past is None else {"anchor.mean": past[0].mean, "anchor.cov": past[0].cov}
    base = model.past
    return arrays | {"base.precision": base.precision, "base.shift": base.shift} if isinstance(base, Tied) else arrays


def state(
    model: GaussianProcess, memory: QuasiNewtonMemory | None, past: tuple[Anchor, int, bool] | None
) -> dict[str, np.ndarray]:
    """Data, sites, inducing inputs, quasi-Newton memory and what is left of rows that are gone."""
    arrays: dict[str, np.ndarray] = {}
    if isinstance(model.inducing, np.ndarray | list | tuple):
        arrays["inducing"] = np.asarray(model.inducing, dtype=np.float64)
    if model.mixing is not None:
        arrays["mixing"] = model.mixing
    if not model.is_fitted:
        return arrays
    more = {"offset": model.extras_.offset, "weights": model.extras_.weights}
    arrays |= {name: a for name, a in more.items() if a is not None}
    arrays |= {"X": model.X_, "Y": model.Y_, "precision": model.sites_.precision, "shift": model.sites_.shift}
    if model.prior_.Z is not None:
        arrays["Z"] = model.prior_.Z
    arrays |= _left(model, past)
    if "tied_" in vars(model):
        arrays |= {"tied.precision": model.tied_.precision, "tied.shift": model.tied_.shift}
    if memory is not None:
        arrays |= {f"memory{i}": np.asarray(a) for i, a in enumerate(memory)}
    return arrays


def blank(cls: type[Model], described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Model:
    """The model of a file before it had seen data."""
    options = dict(described["options"])
    for name in ("likelihood", "rule", "curvature", "cubature"):
        options[name] = registry.decode(described[name], name)
    covariances: Any = registry.decode(described["covariances"], "covariance")
    means: Any = registry.decode(described["mean"], "mean") if "mean" in described else None
    inducing = arrays.get("inducing", described["inducing"])
    return cls(covariances, inducing=inducing, mean=means, mixing=arrays.get("mixing"), **options)


def check(model: GaussianProcess, arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse data and sites that do not fit the model, or each other."""
    vector = as_vector(model.likelihood)
    sizes = check_parts(arrays, DATA, {"D": vector.latents, "outputs": vector.outputs})
    for name in ("N", "inputs", "M", "K", "S"):
        if not sizes.get(name, 1):
            refuse("X, Z, memory", f"a size of 0 ({name})", "at least 1 is needed")
    checks.labels(arrays["Y"], sizes["N"], model.likelihood)
    if (model.structure == "sparse") != ("Z" in arrays):
        refuse("Z", "there" if "Z" in arrays else "missing", "a sparse process has inducing inputs, others have none")
    size = len(model.covariances) * sizes.get("M", 0)
    _check_tied(model, arrays, size)
    _check_left(model, arrays, size, sizes.get("DM", size))
    if together(arrays, ("memory0", "memory1", "memory2")):
        D = vector.latents
        if sizes["K"] not in (D, D + D * D):
            refuse("memory1", f"{sizes['K']} columns", f"{D} or {D + D * D} are needed")
    if model.structure == "markov" and not model.in_space:
        equal("X", sizes["inputs"], 1, "a Markov process has one input")


def _check_left(model: GaussianProcess, arrays: Mapping[str, np.ndarray], size: int, found: int) -> None:
    if together(arrays, ("base.precision", "base.shift")):
        equal("base.shift", found, size, "one number for each inducing variable")
    if together(arrays, ("anchor.mean", "anchor.cov")) and model.structure != "markov":
        refuse("anchor.mean", "there", "only a Markov process has it")


def _check_tied(model: GaussianProcess, arrays: Mapping[str, np.ndarray], size: int) -> None:
    if (model.batch_size is not None) != together(arrays, [part.name for part in TIED]):
        refuse("tied.shift", "there or not", "a process with a batch_size has it, others do not")
    if model.batch_size is not None:
        check_parts(arrays, TIED, {"DM": size})


def _number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(name, f"{value!r:.60}", "numbers are needed")


def memory(arrays: Mapping[str, np.ndarray]) -> QuasiNewtonMemory | None:
    """What the curvature remembers of each site, if it does."""
    count = sum(name.startswith("memory") for name in arrays)
    return QuasiNewtonMemory(*(arrays[f"memory{i}"] for i in range(count))) if count else None


def _past(model: GaussianProcess, described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Past | None:
    """The stream of a file, if it holds one."""
    if ("stream" in described) != ("anchor.mean" in arrays):
        refuse("anchor.mean", "there or not", "a stream has it, other models do not")
    if "stream" not in described:
        return None
    time, window, dropped = described["stream"]
    _number("stream", time)
    whole("stream", window, least=0)
    states = sum(c.state_space().size for c in model.covariances)
    equal("anchor.mean", arrays["anchor.mean"].size, states, "one number for each state")
    if window > len(arrays["X"]) or (dropped and window != len(arrays["X"])):
        refuse("stream", f"a window of {window}", f"X has {len(arrays['X'])} rows")
    return Past(Anchor(float(time), arrays["anchor.mean"], arrays["anchor.cov"]), window, bool(dropped))


def _gone(past: Past | None, arrays: Mapping[str, np.ndarray]) -> Tied | Anchor | None:
    """What is left of rows that are gone."""
    if "base.shift" in arrays:
        return Tied(arrays["base.precision"], arrays["base.shift"])
    return past.anchor if past is not None and past.dropped else None


def finish(model: GaussianProcess, described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Past | None:
    """Bring a model that has its options again to where the fit had ended; its stream, if there was one."""
    model.rng = decode_generator(described["rng"])
    if not together(arrays, ("X", "Y", "precision", "shift")):
        return None
    check(model, arrays)
    model.X_, model.Y_ = arrays["X"], arrays["Y"]
    model.extras_ = Extras(arrays.get("offset"), weights_of(arrays.get("weights"), len(model.X_), model.rule))
    model.sites_ = Sites(arrays["precision"], arrays["shift"])
    past = _past(model, described, arrays)
    model.prior_ = model.prior_at(model.X_, model.extras_, arrays.get("Z"), _gone(past, arrays))
    model.memory_ = memory(arrays)
    if "clock" in described:
        unit, zoned, *columns = described["clock"]
        where = tuple(whole("clock", c, least=0) for c in columns[0]) if columns else None
        model.clock_ = Clock(one_of("clock", unit, UNITS), bool(zoned), where)
    if "tied.shift" in arrays:
        model.tied_ = Tied(arrays["tied.precision"], arrays["tied.shift"])
    else:
        model.marginals_ = model.prior_.update(model.sites_)
        if not all(np.isfinite(part).all() for part in model.marginals_[:3]):
            refuse("precision, shift", "sites that leave no finite posterior", "finite numbers are needed")
    if "result" in described:
        model.result_ = _result(described["result"])
    return past


def _result(described: Sequence[Any]) -> FitResult:
    from gaussfold.gp.inference import FitResult

    iterations, value, converged, history, bad, first = described
    for number in (value, *history):
        _number("result", number)
    for count in (iterations, bad):
        whole("result", count, least=0)
    return FitResult(iterations, value, converged, tuple(history), bad, first)
