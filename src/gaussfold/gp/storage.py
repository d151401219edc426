"""A Gaussian process as named arrays and a JSON header, and back (see `gaussfold.store`)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gaussfold import expectations, rules
from gaussfold.gp.covariances import from_config
from gaussfold.gp.sparse import Tied
from gaussfold.likelihoods import chained_from_config
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.store_codecs import decode_rng, encode_rng
from gaussfold.types import Sites

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess

Model = TypeVar("Model", bound="GaussianProcess")

_OPTIONS = ("structure", "damping", "max_iter", "tol", "start_precision", "batch_size", "verbose")


def _described(thing: Any) -> Any:
    """A rule, policy or cubature as JSON; names and None pass."""
    if dataclasses.is_dataclass(thing):
        return {"kind": type(thing).__name__, **dataclasses.asdict(thing)}  # type: ignore[arg-type]
    return thing


def _made(module: Any, described: Any) -> Any:
    if not isinstance(described, dict):
        return described
    options = dict(described)
    kind = options.pop("kind")
    if kind not in module.__all__:
        msg = f"{kind!r} is not known to this version of gaussfold"
        raise ValueError(msg)
    return getattr(module, kind)(**options)


def header(model: GaussianProcess) -> dict[str, Any]:
    """Everything but the arrays."""
    described = {
        "covariances": [c.config() for c in model.covariances],
        "likelihood": model.likelihood.config(),
        "rule": _described(model.rule),
        "curvature": _described(model.curvature),
        "cubature": _described(model.cubature),
        "options": {name: getattr(model, name) for name in _OPTIONS},
        "rng": encode_rng(model._rng),
        "inducing": int(model.inducing) if isinstance(model.inducing, int | np.integer) else None,
    }
    if hasattr(model, "result_"):
        described["result"] = list(model.result_)
    return described


def state(model: GaussianProcess) -> dict[str, np.ndarray]:
    """Data, sites, inducing inputs and quasi-Newton memory."""
    arrays: dict[str, np.ndarray] = {}
    if isinstance(model.inducing, np.ndarray | list | tuple):
        arrays["inducing"] = np.asarray(model.inducing, dtype=np.float64)
    if not hasattr(model, "prior_"):
        return arrays
    arrays |= {"X": model.X_, "Y": model.Y_, "precision": model.sites_.precision, "shift": model.sites_.shift}
    if model.structure == "sparse":
        arrays["Z"] = model.prior_.Z
    if hasattr(model, "tied_"):
        arrays |= {"tied.precision": model.tied_.precision, "tied.shift": model.tied_.shift}
    if model._memory is not None:
        arrays |= {f"memory{i}": np.asarray(a) for i, a in enumerate(model._memory)}
    return arrays


def rebuild(cls: type[Model], described: dict[str, Any], arrays: dict[str, np.ndarray]) -> Model:
    """Undo `state` and `header`."""
    from gaussfold.gp.model import FitResult
    from gaussfold.gp.sparse import SparsePrior

    covariances = [from_config(c) for c in described["covariances"]]
    options = dict(described["options"])
    model = cls(
        covariances, chained_from_config(described["likelihood"]),
        _made(rules, described["rule"]), _made(rules, described["curvature"]), options.pop("structure"),
        cubature=_made(expectations, described["cubature"]),
        inducing=arrays.get("inducing", described["inducing"]), **options,
    )  # fmt: skip
    model._rng = decode_rng(described["rng"])
    if "X" not in arrays:
        return model
    model.X_, model.Y_ = arrays["X"], arrays["Y"]
    model.sites_ = Sites(arrays["precision"], arrays["shift"])
    if model.structure == "sparse":
        model.prior_ = SparsePrior(model.covariances, model.X_, arrays["Z"])
    else:
        model.prior_ = model._prior_at(model.X_)
    if "tied.shift" in arrays:
        model.tied_ = Tied(arrays["tied.precision"], arrays["tied.shift"])
    else:
        model.marginals_ = model.prior_.update(model.sites_)
    if "memory0" in arrays:
        model._memory = QuasiNewtonMemory(*(arrays[f"memory{i}"] for i in range(len(QuasiNewtonMemory._fields))))
    if "result" in described:
        iterations, value, converged, history, bad, first = described["result"]
        model.result_ = FitResult(iterations, value, converged, tuple(history), bad, first)
    return model
