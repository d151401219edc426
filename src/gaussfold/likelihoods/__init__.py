"""What the data say: one family, one file: p(y | f), derivatives and moments in NumPy, and what the engine compiles.

``base`` is the parent of those of one latent, ``chained`` of those of several (``one_latent`` makes the one of the
other; ``conditionally_linear``, ``gaussian_noise``, ``quadratic_mean``, ``normal``, ``regression`` are what several
share); ``custom`` takes any function. A new one is a file and a line in ``FAMILIES``: docs/skeletons/likelihood.py.

What must not be broken: labels are judged in one place (``explains``, its twin ``is_label``); NumPy and compiled
formulas agree; the record's fields are all the parameters. Twins: ``tests/reference/likelihoods.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

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
from gaussfold.likelihoods.vector_gaussian import VectorGaussian
from gaussfold.protocols import Likelihood
from gaussfold.registry import Catalogue, decode

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
    "VectorGaussian",
    "VectorLikelihood",
    "as_vector",
    "chained_from_config",
    "from_config",
    "resolve",
    "resolve_any",
]

FAMILIES: Catalogue[object] = Catalogue(
    "likelihood",
    (
        Bernoulli, Beta, Gamma, Gaussian, NegativeBinomial, Ordinal, Poisson, StudentT,
        HeteroscedasticGaussian, ProductGaussian, RegressionNetwork, Softmax,
        VectorGaussian,
    ),
    named={"bernoulli": Bernoulli(), "poisson": Poisson()},
    accepts=Likelihood,
    also="an object such as gaussfold.likelihoods.Gaussian(std=1.0); to write your own, subclass "
    "gaussfold.likelihoods.ScalarLikelihood",
)  # fmt: skip
"""Every family, of one latent and of several. A new one is a file of its own and one entry here."""


def resolve(likelihood: str | Likelihood) -> Likelihood:
    """Turn a name into a likelihood of one latent; an object passes through.

    Only the families without parameters that matter have a name: "bernoulli" (logit link) and "poisson".

    Examples
    --------
    >>> resolve("bernoulli")
    Bernoulli(link='logit', expectation='quadrature')
    """
    return cast("Likelihood", FAMILIES.resolve(likelihood))


def resolve_any(likelihood: str | Likelihood | VectorLikelihood) -> Likelihood | VectorLikelihood:
    """The same for likelihoods of one latent or of several.

    Examples
    --------
    >>> resolve_any("poisson"), resolve_any(Softmax(3))
    (Poisson(), Softmax(classes=3))
    """
    return likelihood if isinstance(likelihood, VectorLikelihood) else resolve(likelihood)


def from_config(config: Mapping[str, object]) -> ScalarLikelihood | VectorLikelihood:
    """Build the likelihood that ``config()`` described.

    Examples
    --------
    >>> from_config({"name": "StudentT", "df": 3.5, "scale": 0.8})
    StudentT(df=3.5, scale=0.8)
    """
    return cast("ScalarLikelihood | VectorLikelihood", decode(config, "likelihood"))


chained_from_config = from_config
"""The same: one function builds likelihoods of one latent and of several."""
