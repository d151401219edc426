"""What the data say: one family per file, each a pointwise p(y | f) with its derivatives and moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from gaussfold.likelihoods.base import ScalarLikelihood
from gaussfold.likelihoods.bernoulli import Bernoulli
from gaussfold.likelihoods.beta import Beta
from gaussfold.likelihoods.chained import VectorLikelihood
from gaussfold.likelihoods.custom import CustomLikelihood
from gaussfold.likelihoods.gamma import Gamma
from gaussfold.likelihoods.gaussian import Gaussian
from gaussfold.likelihoods.heteroscedastic import HeteroscedasticGaussian
from gaussfold.likelihoods.negative_binomial import NegativeBinomial
from gaussfold.likelihoods.one_latent import as_vector
from gaussfold.likelihoods.ordinal import Ordinal
from gaussfold.likelihoods.poisson import Poisson
from gaussfold.likelihoods.product import ProductGaussian
from gaussfold.likelihoods.regression_network import RegressionNetwork
from gaussfold.likelihoods.softmax import Softmax
from gaussfold.likelihoods.student_t import StudentT
from gaussfold.protocols import Likelihood

T = TypeVar("T")

__all__ = [
    "Bernoulli",
    "Beta",
    "CustomLikelihood",
    "Gamma",
    "Gaussian",
    "HeteroscedasticGaussian",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "ProductGaussian",
    "RegressionNetwork",
    "ScalarLikelihood",
    "Softmax",
    "StudentT",
    "VectorLikelihood",
    "as_vector",
    "chained_from_config",
    "from_config",
    "resolve",
]

_FAMILIES: dict[str, Callable[..., ScalarLikelihood]] = {
    family.__name__: family
    for family in (Bernoulli, Beta, Gamma, Gaussian, NegativeBinomial, Ordinal, Poisson, StudentT)
}
_CHAINED: dict[str, Callable[..., VectorLikelihood]] = {
    family.__name__: family for family in (HeteroscedasticGaussian, ProductGaussian, RegressionNetwork, Softmax)
}
_BY_NAME: dict[str, type[Bernoulli | Poisson]] = {"bernoulli": Bernoulli, "poisson": Poisson}


def resolve(likelihood: str | Likelihood) -> Likelihood:
    """Turn a name into a likelihood; an object passes through.

    Only the families without parameters that matter have a name: "bernoulli" (logit link) and "poisson".

    Examples
    --------
    >>> resolve("bernoulli")
    Bernoulli(link='logit', expectation='quadrature')
    """
    found: Likelihood | None = None
    if isinstance(likelihood, str):
        found = _BY_NAME[likelihood]() if likelihood in _BY_NAME else None
    elif isinstance(likelihood, Likelihood) and not isinstance(likelihood, type):  # a class is not an object
        found = likelihood
    if found is None:
        msg = (
            f"likelihood={likelihood!r}: allowed are {', '.join(map(repr, _BY_NAME))} or an object such as "
            "gaussfold.likelihoods.Gaussian(std=1.0); to write your own, subclass "
            "gaussfold.likelihoods.ScalarLikelihood"
        )
        raise ValueError(msg)
    return found


def from_config(config: Mapping[str, object]) -> ScalarLikelihood:
    """Build the likelihood that ``config()`` described.

    Examples
    --------
    >>> from_config({"name": "StudentT", "df": 3.5, "scale": 0.8})
    StudentT(df=3.5, scale=0.8)
    """
    parameters = dict(config)
    return _built(_FAMILIES, parameters)


def chained_from_config(config: Mapping[str, object]) -> ScalarLikelihood | VectorLikelihood:
    """As :func:`from_config`, for likelihoods of several latents too.

    Examples
    --------
    >>> chained_from_config({"name": "ProductGaussian", "std": 0.3})
    ProductGaussian(std=0.3)
    """
    everything: dict[str, Callable[..., ScalarLikelihood | VectorLikelihood]] = {**_FAMILIES, **_CHAINED}
    return _built(everything, dict(config))


def _built(families: Mapping[str, Callable[..., T]], parameters: dict[str, object]) -> T:
    name = parameters.pop("name", None)
    family = families.get(name) if isinstance(name, str) else None
    if family is None:
        msg = f"likelihood name={name!r}: allowed are {', '.join(map(repr, sorted(families)))}"
        raise ValueError(msg)
    try:
        return family(**parameters)
    except TypeError as error:
        msg = f"likelihood {name} cannot be built from {parameters!r}: {error}"
        raise ValueError(msg) from error
