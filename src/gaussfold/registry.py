"""Names, objects and JSON: one table for every option that can be given by name or written into a model file.

Each room keeps a :class:`Catalogue` of what it offers (the rules, the likelihoods, ...), beside the classes themselves;
:data:`HOMES` says where it is. Rooms are imported when first asked for: this file lies below all of them, and importing
it costs nothing. Three questions are answered here and nowhere else:

* which object does a name or an argument stand for: :func:`resolve`
* how does an option object become JSON, and JSON the object: :func:`encode`, :func:`decode`
* which class does a model file hold: :data:`MODELS`, :func:`model_class`

A class that is to be stored keeps its constructor's arguments as attributes of the same names (dataclasses do); they
are numbers, names, None, sequences of such, and other option objects. One's own class joins with
``register("rule", MyRule)``: it is then found by its name, saved, and loaded wherever it has been registered before.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, NoReturn, TypeAlias, TypeVar, cast

import numpy as np

from gaussfold.checks import one_of, refuse_name

T = TypeVar("T")
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Path: TypeAlias = tuple[str, str]

HOMES: dict[str, Path] = {
    "likelihood": ("gaussfold.likelihoods", "FAMILIES"),
    "rule": ("gaussfold.rules.catalogue", "RULES"),
    "at": ("gaussfold.rules.at", "ATS"),
    "curvature": ("gaussfold.rules.curvature", "CURVATURES"),
    "cubature": ("gaussfold.expectations.cubature", "CUBATURES"),
    "coupling": ("gaussfold.beliefs.diagonal.coupling", "COUPLINGS"),
    "covariance": ("gaussfold.gp.covariances", "COVARIANCES"),
    "mean": ("gaussfold.gp.means", "MEANS"),
    "optimizer": ("gaussfold.factors.gradient", "OPTIMIZERS"),
}
"""Kind -> module and name of its catalogue."""

MODELS: dict[str, str] = {
    "Bank": "gaussfold.beliefs",
    "BlockGaussian": "gaussfold.beliefs",
    "DenseGaussian": "gaussfold.beliefs",
    "DiagonalBlocks": "gaussfold.beliefs",
    "DiagonalClassStack": "gaussfold.beliefs",
    "DiagonalGaussian": "gaussfold.beliefs",
    "DiagonalMixture": "gaussfold.beliefs",
    "DiagonalStack": "gaussfold.beliefs",
    "FactorGaussian": "gaussfold.beliefs",
    "LowRankGaussian": "gaussfold.beliefs",
    "GaussianProcess": "gaussfold.gp",
    "GPClassifier": "gaussfold.estimators.gp",
    "GPRegressor": "gaussfold.estimators.gp",
    "RiverClassifier": "gaussfold.estimators.river",
    "RiverMulticlassClassifier": "gaussfold.estimators.river",
    "RiverRegressor": "gaussfold.estimators.river",
    "StreamingClassifier": "gaussfold.estimators",
    "StreamingFactorAnalysis": "gaussfold.estimators.factor_analysis",
    "StreamingPoissonRegressor": "gaussfold.estimators",
    "StreamingRegressor": "gaussfold.estimators",
    "StreamModel": "gaussfold.cli.model",
    "ClassModel": "gaussfold.cli.class_model",
    "LRVGA": "gaussfold.deep.lrvga",
    "Posterior": "gaussfold.deep.posterior",
    "MultiPosterior": "gaussfold.deep.mixture",
    "TrainingState": "gaussfold.deep.state",
}
"""What a model file may hold, beliefs and estimators alike: class -> the module to import it from."""

_KIND_OF: dict[type, str] = {}
_OWN_MODELS: dict[str, type] = {}


class Catalogue(Generic[T]):
    """What a room offers of one kind.

    Parameters
    ----------
    kind
        The argument by which such a thing is given: "rule", "at", ...
    members
        The classes.
    named
        Names -> objects ready for use. A class's own ``name`` by default, where it has one.
    accepts
        What an object must be an instance of to be used without having been registered (it cannot be stored then).
        None: only members will do.
    also
        What else than a name may be given, for the error message.
    """

    def __init__(
        self,
        kind: str,
        members: Iterable[type[T]],
        *,
        named: Mapping[str, T] | None = None,
        accepts: type | None = None,
        also: str = "",
    ) -> None:
        self.kind, self._accepts, self._also = kind, accepts, also
        self._members: dict[str, type[T]] = {}
        self._named: dict[str, T] = dict(named or {})
        for member in members:
            self._members[member.__name__] = member
            _KIND_OF[member] = kind
            if named is None:
                self._give_name(member)

    @property
    def names(self) -> tuple[str, ...]:
        """What may be given as a string."""
        return tuple(self._named)

    @property
    def members(self) -> tuple[type[T], ...]:
        """Every class that can be stored."""
        return tuple(self._members.values())

    def add(self, member: type[T]) -> None:
        """Let one's own class in."""
        if self._members.get(member.__name__, member) is not member:
            msg = f"{self.kind} {member.__name__}: another class has this name already; choose a different one"
            raise ValueError(msg)
        self._give_name(member)
        self._members[member.__name__] = member
        _KIND_OF[member] = self.kind

    def remove(self, member: type[T]) -> None:
        """Undo :meth:`add`."""
        del self._members[member.__name__], _KIND_OF[member]
        self._named = {name: value for name, value in self._named.items() if type(value) is not member}

    def resolve(self, value: object, *, among: type = object) -> T:
        """The object that a name stands for; an object passes. ``among`` leaves out what is no instance of it."""
        allowed = {name: named for name, named in self._named.items() if isinstance(named, among)}
        if isinstance(value, str):
            if value in allowed:
                return allowed[value]
        elif self._is_member(value) and isinstance(value, among):
            return cast("T", value)
        return refuse_name(self.kind, value, allowed, also=self._also)

    def member(self, name: object, module: object = None) -> type[T]:
        """The class of that name, as a model file has it."""
        if isinstance(name, str) and name in self._members:
            return self._members[name]
        where = f" (it was in module {module!r})" if isinstance(module, str) else ""
        msg = (
            f"{self.kind} name={name!r}: allowed are {', '.join(map(repr, sorted(self._members)))}; if it is your own"
            f"{where}, import it and call gaussfold.registry.register({self.kind!r}, {name}) before loading"
        )
        raise ValueError(msg)

    def _is_member(self, value: object) -> bool:
        if isinstance(value, type):  # a class is not an object
            return False
        return isinstance(value, self._accepts if self._accepts is not None else self.members)

    def _give_name(self, member: type[T]) -> None:
        """Its own ``name`` stands for the object with default parameters."""
        name = vars(member).get("name")
        if isinstance(name, str) and not _required(member):
            if name in self._named and type(self._named[name]) is not member:
                msg = f"{self.kind} name={name!r}: {self._named[name]!r} is called so already; choose another name"
                raise ValueError(msg)
            self._named[name] = member()


def catalogue(kind: str) -> Catalogue[object]:
    """The catalogue of a kind, imported if it must be."""
    module, name = HOMES[one_of("kind", kind, HOMES)]
    return cast("Catalogue[object]", vars(importlib.import_module(module))[name])


def resolve(kind: str, value: object) -> object:
    """The object of that kind that a name stands for; an object passes.

    Examples
    --------
    >>> resolve("rule", "ep")
    EP(alpha=1.0)
    >>> resolve("at", "never")
    Traceback (most recent call last):
    ValueError: at='never': allowed are 'prior', 'posterior', 'extragradient', or an object from gaussfold.rules
    """
    return catalogue(kind).resolve(value)


def register(kind: str, cls: type[T]) -> type[T]:
    """Let a class from outside the package be found by name, saved and loaded.

    Parameters
    ----------
    kind
        One of :data:`HOMES`, or "model" for a belief or estimator that model files are to hold.
    cls
        The class; what a model file holds is its name and its parameters, so register it before loading, too.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from gaussfold.gp import Matern32
    >>> @dataclass(frozen=True)
    ... class Rough(Matern32):
    ...     depth: int = 2
    >>> _ = register("covariance", Rough)
    >>> decode(encode(Rough(0.5, depth=3)), "covariance")
    Rough(variance=0.5, lengthscale=1.0, depth=3)
    >>> unregister("covariance", Rough)
    """
    if kind == "model":
        if MODELS.get(cls.__name__) is not None or _OWN_MODELS.get(cls.__name__, cls) is not cls:
            msg = f"model {cls.__name__}: another class has this name already; choose a different one"
            raise ValueError(msg)
        _OWN_MODELS[cls.__name__] = cls
    else:
        catalogue(kind).add(cls)
    return cls


def unregister(kind: str, cls: type) -> None:
    """Undo :func:`register`."""
    if kind == "model":
        del _OWN_MODELS[cls.__name__]
    else:
        catalogue(kind).remove(cls)


def model_names() -> tuple[str, ...]:
    """What a model file may hold, in alphabetical order."""
    return tuple(sorted((*MODELS, *_OWN_MODELS)))


def model_class(name: str) -> type | None:
    """The class that a model file calls so; None if there is none."""
    if name in _OWN_MODELS:
        return _OWN_MODELS[name]
    if name not in MODELS:
        return None
    # a package's lazy names are attributes of the module, not in its namespace
    return cast("type", getattr(importlib.import_module(MODELS[name]), name))


# JSON


def encode(value: object) -> Json:
    """An option as JSON: names, numbers and None pass, sequences become lists, an object its kind, name and parameters.

    Examples
    --------
    >>> from gaussfold.rules import EP
    >>> encode(EP(alpha=0.5))
    {'kind': 'rule', 'name': 'EP', 'parameters': {'alpha': 0.5}}
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return cast("Json", value.tolist())
    if isinstance(value, list | tuple):
        return [encode(part) for part in value]
    cls = type(value)
    if cls not in _KIND_OF:
        _no_name(value)
    found: dict[str, Json] = {"kind": _KIND_OF[cls], "name": cls.__name__, "parameters": parameters(value)}
    return found if cls.__module__.startswith("gaussfold.") else found | {"module": cls.__module__}


def decode(document: object, kind: str) -> object:
    """The option of that kind that :func:`encode` was given.

    Files of format 1 are read too: there a likelihood or covariance was ``{"name": class, **parameters}`` and anything
    else ``{"kind": class, **parameters}``.

    Examples
    --------
    >>> decode({"kind": "GaussHermite", "order": 5}, "cubature")
    GaussHermite(order=5)
    """
    if isinstance(document, list | tuple):
        return tuple(decode(part, kind) for part in document)
    if not isinstance(document, Mapping):
        return document
    if "parameters" in document:
        kind, name, options = document["kind"], document["name"], document["parameters"]
    else:
        options = dict(document)
        name = options.pop("name", None) or options.pop("kind", None)
    cls = catalogue(kind).member(name, document.get("module"))
    try:
        return cls(**{key: decode(option, kind) for key, option in options.items()})
    except TypeError as error:
        msg = f"{kind} {name} cannot be built from {options!r}: {error}"
        raise ValueError(msg) from error


def parameters(value: object) -> dict[str, Json]:
    """The constructor's arguments as JSON, read from the attributes of the same names."""
    kept = vars(value)
    names = _arguments(type(value))
    for name in names:
        if name not in kept:
            msg = f"{value!r} cannot be saved: it does not keep its argument {name!r} in an attribute of that name"
            raise ValueError(msg)
    return {name: encode(kept[name]) for name in names}


def config(value: object) -> dict[str, Json]:
    """Name and parameters side by side, as ``config()`` of likelihoods and covariances gives them."""
    if type(value) not in _KIND_OF:
        _no_name(value)
    return {"name": type(value).__name__, **parameters(value)}


def _arguments(cls: Callable[..., object]) -> list[str]:
    return list(inspect.signature(cls).parameters)


def _required(cls: Callable[..., object]) -> bool:
    empty = inspect.Parameter.empty
    return any(argument.default is empty for argument in inspect.signature(cls).parameters.values())


def _no_name(value: object) -> NoReturn:
    cls = type(value).__name__
    msg = (
        f"{cls} has no name that a model file could hold, so {value!r} cannot be saved: a file holds numbers, not "
        f"functions; call gaussfold.registry.register(kind, {cls}) before saving and loading, or save the belief's "
        "state() and build the rest anew when loading"
    )
    raise ValueError(msg)
