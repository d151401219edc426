"""A network and a likelihood of :mod:`gaussfold.likelihoods`, joined into the function that is learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import likelihoods
from gaussfold.checks import refuse
from gaussfold.deep.families import Likelihood, check_classes, form_of, has_form, known_families
from gaussfold.deep.forms import Outputs
from gaussfold.deep.noise import LearnedGaussian, parted
from gaussfold.deep.samecode import canonical
from gaussfold.deep.types import Apply, Batch, Document, LogLikelihoodFunction, Tree
from gaussfold.types import ArrayLike

FunctionT = TypeVar("FunctionT")
_NAMED: dict[str, Likelihood] = {
    "softmax": likelihoods.Softmax(),
    "gaussian": LearnedGaussian(),
    "heteroscedastic": likelihoods.HeteroscedasticGaussian(),
}
"""Names that mean something to networks, besides those of :func:`gaussfold.likelihoods.resolve`."""


@dataclass(frozen=True)
class LogLikelihood:
    """``log_likelihood(params, (X, y))``: the log probability of each row's label; made by :func:`log_likelihood`."""

    apply: Apply
    likelihood: Likelihood

    def __call__(self, params: Tree, batch: Batch) -> jax.Array:
        """One log probability per row."""
        X, y = batch
        return log_prob(self.likelihood, y, forward(self.likelihood, self.apply, params, X))

    def check(self, data: Batch, params: Tree = None) -> None:
        """Raise a ValueError unless these are inputs and labels that the likelihood can explain.

        With ``params``, classes are compared with the network's outputs: JAX would clip one that is too large.
        """
        if not (isinstance(data, tuple | list) and len(data) == 2):
            msg = f"data: {type(data).__name__}; a pair (X, y) is needed by gaussfold.deep.log_likelihood"
            raise ValueError(msg)
        X, y = data
        form = form_of(self.likelihood)
        form.check_labels(y)
        if form.classes and params is not None:
            outputs = jax.eval_shape(lambda: forward(self.likelihood, self.apply, params, jax.tree.map(jnp.asarray, X)))
            check_classes(np.asarray(y, dtype=np.float64).ravel(), outputs.shape[-1])


def log_likelihood(apply: Apply, likelihood: str | Likelihood) -> LogLikelihood:
    """Join a network and a likelihood into the function that the methods of this module learn from.

    Parameters
    ----------
    apply
        ``apply(params, X)``: the network.
    likelihood
        An object of :mod:`gaussfold.likelihoods`, :class:`LearnedGaussian`, or a name: "softmax", "bernoulli",
        "poisson", "gaussian" (learned noise), "heteroscedastic" (two outputs: a mean, and a noise level through a
        softplus). How many classes softmax has, the network says.

    Examples
    --------
    >>> import gaussfold as gf
    >>> import jax.numpy as jnp
    >>> function = log_likelihood(lambda params, X: X @ params, gf.likelihoods.Gaussian(std=1.0))
    >>> print(function(jnp.ones(2), (jnp.eye(2), jnp.asarray([1.0, 2.0]))))
    [-0.9189385 -1.4189385]
    """
    return LogLikelihood(function("apply", apply, "(params, X)"), resolve(likelihood))


def function(name: str, value: FunctionT, arguments: str) -> FunctionT:
    """Something that can be called; of functions that do the same, always the one."""
    if not callable(value):
        refuse(name, value, f"a function of {arguments}", f"give one, not a {type(value).__name__}")
    return canonical(value)


def likelihood_in(function: LogLikelihoodFunction) -> Likelihood | None:
    """What a log likelihood was made of; None if someone wrote it."""
    return function.likelihood if isinstance(function, LogLikelihood) else None


def resolve(likelihood: object) -> Likelihood:
    """Turn a name into an object; refuse what has no form in JAX."""
    if isinstance(likelihood, str) and likelihood in _NAMED:
        return _NAMED[likelihood]
    if isinstance(likelihood, likelihoods.Softmax):
        return likelihoods.Softmax()  # how many classes there are, the network says
    if isinstance(likelihood, LearnedGaussian | likelihoods.HeteroscedasticGaussian):
        return likelihood
    found = _of_one_latent(likelihood)
    if found is None:
        allowed = ", ".join([*(f"likelihoods.{name}" for name in known_families()), "'softmax'", "'gaussian'"])
        msg = f"likelihood={likelihood!r}: allowed are {allowed}; or write log_likelihood(params, batch) yourself"
        raise ValueError(msg)
    return found


def _of_one_latent(likelihood: object) -> likelihoods.ScalarLikelihood | None:
    try:
        found = likelihoods.resolve(likelihood)  # type: ignore[arg-type]  # it refuses what is none
    except ValueError:
        return None
    return found if isinstance(found, likelihoods.ScalarLikelihood) and has_form(found) else None


def from_config(config: Document) -> Likelihood:
    """Build the likelihood that ``config()`` described."""
    found = LearnedGaussian() if config["name"] == "LearnedGaussian" else likelihoods.from_config(config)
    return cast("Likelihood", found)


def forward(likelihood: Likelihood | None, apply: Apply, params: Tree, X: Tree) -> Outputs:
    """What the likelihood needs of the network at X: its outputs, and a learned noise level beside them."""
    if isinstance(likelihood, LearnedGaussian):
        network, log_std = parted(params)
        return apply(network, X), log_std
    return apply(params, X)


def log_prob(likelihood: Likelihood, y: ArrayLike, outputs: Outputs) -> jax.Array:
    """Log probability of each row's label given the outputs of :func:`forward`."""
    return form_of(likelihood).log_prob(y, outputs)


def conditional(likelihood: Likelihood | None, outputs: Outputs) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of y given the outputs: of the one-hot class for softmax, else per output."""
    if likelihood is None:
        return outputs, jnp.zeros_like(outputs)
    return form_of(likelihood).conditional(outputs)
