"""The result of every method here: a Gaussian belief on the flat vector of a tree of parameters."""

from __future__ import annotations

import os
from functools import partial
from typing import Self, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import store
from gaussfold.beliefs.factor import FactorGaussian
from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.checks import one_of, whole
from gaussfold.deep import likelihoods
from gaussfold.deep.families import Likelihood
from gaussfold.deep.forms import Outputs
from gaussfold.deep.glm import linearised
from gaussfold.deep.point import PointMass
from gaussfold.deep.prediction import Prediction, prediction
from gaussfold.deep.trees import Layout, layout_from, layout_of
from gaussfold.deep.types import Apply, Arrays, Document, Seed, Tree
from gaussfold.types import Array

Belief: TypeAlias = FactorGaussian | LowRankGaussian | PointMass
"""What a network's parameters may be distributed as."""
LikelihoodOrName: TypeAlias = str | Likelihood | None
_BELIEFS: dict[str, type[Belief]] = {
    "FactorGaussian": FactorGaussian,
    "LowRankGaussian": LowRankGaussian,
    "PointMass": PointMass,
}
WAYS: dict[str, bool | None] = {"samples": False, "linearised": True, "mean": None}
"""How to predict, and whether the network is linearised for it; None: there is nothing to draw."""
_AT_ONCE = 1 << 24
"""Numbers that the networks of one predicting call may hold together."""


class Posterior:
    """A Gaussian over the parameters of a network.

    Parameters
    ----------
    belief
        A :class:`gaussfold.FactorGaussian` or :class:`gaussfold.LowRankGaussian` over the flat vector.
    layout
        How the tree lies in it: :func:`gaussfold.deep.layout_of`, or a tree of parameters.
    likelihood
        What :func:`gaussfold.deep.log_likelihood` was given, if that is known.
    usual
        How :meth:`predict` predicts unless told otherwise.

    Examples
    --------
    >>> import gaussfold as gf, numpy as np
    >>> belief = gf.FactorGaussian([1.0, 2.0, 0.5], np.zeros((3, 1)), [0.1, 0.1, 0.1])
    >>> posterior = Posterior(belief, {"w": np.zeros(2, np.float32), "b": np.zeros((), np.float32)})
    >>> posterior.mean
    {'b': Array(1., dtype=float32), 'w': Array([2. , 0.5], dtype=float32)}
    """

    def __init__(
        self, belief: Belief, layout: Layout | Tree, likelihood: Likelihood | None = None, usual: str = "samples"
    ) -> None:
        if type(belief) not in _BELIEFS.values():
            msg = f"belief: {type(belief).__name__}; allowed are {', '.join(_BELIEFS)}"
            raise ValueError(msg)
        self.layout = layout if isinstance(layout, Layout) else layout_of(layout)
        if belief.dim != self.layout.dim:
            msg = f"belief: {belief.dim} parameters, but the tree has {self.layout.dim}; they must be the same"
            raise ValueError(msg)
        self.belief, self.likelihood, self.usual = belief, likelihood, one_of("usual", usual, WAYS)

    def __repr__(self) -> str:
        return f"Posterior({self.layout.dim} parameters in {len(self.layout.leaves)} leaves, {self.likelihood!r})"

    @property
    def mean(self) -> Tree:
        """The mean, as a tree of the parameters' structure and dtypes."""
        return self.layout.unflatten(self.belief.mean.astype(self.layout.dtype))

    def std(self) -> Tree:
        """Standard deviation of each parameter, as a tree."""
        return self.layout.unflatten(np.sqrt(self.belief.variance()).astype(self.layout.dtype))

    def sample(self, rng: Seed, n: int, *, stacked: bool = False) -> Tree:
        """Draw n networks: a list of n trees, or with ``stacked`` one tree whose leaves have n in front.

        ``rng`` is a NumPy generator, a seed or a JAX key; the same one gives the same networks.
        """
        tree = self.layout.unflatten(self._draws(generator(rng), whole("n", n)))
        return tree if stacked else [jax.tree.map(lambda leaf, i=i: leaf[i], tree) for i in range(n)]

    def predict(
        self,
        apply: Apply,
        X: Tree,
        n_samples: int = 100,
        *,
        rng: Seed = 0,
        likelihood: LikelihoodOrName = None,
        method: str | None = None,
    ) -> Prediction:
        """Average the predictions of networks drawn from the posterior, (B.6)-(B.8), or without drawing any.

        Parameters
        ----------
        apply
            ``apply(params, X)``; it is compiled once for functions that do the same.
        X
            Inputs, whatever ``apply`` takes.
        n_samples
            Number of networks.
        rng
            As for :meth:`sample`; a fixed seed by default, so that a prediction can be repeated.
        likelihood
            As for :func:`gaussfold.deep.log_likelihood`, if the posterior was not learned with one.
        method
            "samples"; "linearised": the network is linear around the mean, so that outputs are normal, with a density
            in closed form for normal noise and classes (:mod:`gaussfold.deep.broadened`) and drawn outputs for other
            likelihoods; "mean": the one network in the middle. By default what belongs to how it was learned.

        Returns
        -------
        Prediction
            ``mean``, ``std`` (noise included), ``epistemic_std`` and ``log_prob(y)``, the predictive density.
        """
        apply = likelihoods.function("apply", apply, "(params, X)")
        family = self.likelihood if likelihood is None else likelihoods.resolve(likelihood)
        way, draw = WAYS[one_of("method", self.usual if method is None else method, WAYS)], generator(rng)
        if way is None:
            middle = jax.tree.map(lambda leaf: leaf[None], self.mean)
            return prediction(family, _outputs(apply, family, middle, jax.tree.map(jnp.asarray, X)))
        if way:
            return linearised(self.belief, self.layout, apply, X, family, draw, n_samples)
        step = max(1, min(n_samples, _AT_ONCE // self.layout.dim))
        inputs = jax.tree.map(jnp.asarray, X)
        pieces = []
        for start in range(0, n_samples, step):
            trees = self.layout.unflatten(self._draws(draw, min(step, n_samples - start)))
            pieces.append(_outputs(apply, family, trees, inputs))
        return prediction(family, jax.tree.map(lambda *parts: jnp.concatenate(parts), *pieces))

    def log_prob(self, tree: Tree) -> float:
        """Log density of the posterior at a tree of parameters."""
        return float(self.belief.log_prob(np.asarray(self.layout.flatten(tree), dtype=np.float64)))

    def like(self, params: Tree) -> Self:
        """The same posterior on trees of the structure of ``params``, which must have the same leaves."""
        self.layout.check(params)
        return type(self)(self.belief, layout_of(params), self.likelihood, self.usual)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file; see :func:`gaussfold.deep.load`."""
        store.save(self, path)

    def state(self) -> Arrays:
        """The belief's arrays."""
        return self.belief.state()

    def store_header(self) -> Document:
        """The tree's structure and the likelihood, as JSON."""
        likelihood = None if self.likelihood is None else self.likelihood.config()
        return {
            "belief": type(self.belief).__name__,
            "likelihood": likelihood,
            "usual": self.usual,
            **self.layout.describe(),
        }

    @classmethod
    def from_store(cls, header: Document, arrays: Arrays) -> Self:
        """The posterior of a file."""
        belief = _BELIEFS[header["belief"]].from_state(arrays)
        config = header["likelihood"]
        family = None if config is None else likelihoods.from_config(config)
        return cls(belief, layout_from(header), family, header.get("usual", "samples"))

    def _draws(self, rng: np.random.Generator, n: int) -> Array:
        return self.belief.sample(n, rng).astype(self.layout.dtype)


def generator(rng: Seed) -> np.random.Generator:
    """A NumPy generator from itself, a seed or a JAX key."""
    if isinstance(rng, jax.Array):
        typed = jnp.issubdtype(rng.dtype, jax.dtypes.prng_key)
        return np.random.default_rng(np.asarray(jax.random.key_data(rng) if typed else rng).ravel())
    return np.random.default_rng(rng)


@partial(jax.jit, static_argnums=(0, 1))
def _outputs(apply: Apply, likelihood: Likelihood | None, trees: Tree, X: Tree) -> Outputs:
    return jax.vmap(lambda params: likelihoods.forward(likelihood, apply, params, X))(trees)
