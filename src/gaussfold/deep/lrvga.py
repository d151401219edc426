"""L-RVGA for any network, in one pass and without a learning rate: lrvga §4.2."""

from __future__ import annotations

import math
import numbers
import os
from functools import partial
from typing import NoReturn, Self

import jax
import numpy as np

from gaussfold import schema, store
from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.checks import one_of, refuse, whole
from gaussfold.deep import likelihoods
from gaussfold.deep.extragradient import SCHEMES, Block, Task, scheme_name, step
from gaussfold.deep.families import Likelihood
from gaussfold.deep.fisher import Model, checked_labels, interface
from gaussfold.deep.noise import LearnedGaussian
from gaussfold.deep.posterior import Posterior
from gaussfold.deep.trees import layout_from, layout_of
from gaussfold.deep.types import Apply, Arrays, Document, Tree
from gaussfold.factors.woodbury import Precision
from gaussfold.rules import Extragradient, Prior
from gaussfold.types import Array, ArrayLike

PARTS = (
    schema.Part("steps", (), "whole", low=0),
    schema.Part("loss", (2,), "double", free=True),
    schema.Part("waiting_weight", ("waiting",), "double", low=0.0, optional=True),
)
"""What a model file holds beside the belief and the rows that wait."""


class LRVGA:
    """A Gaussian posterior over the parameters of any JAX function, learned in one pass without a learning rate.

    Parameters
    ----------
    apply
        ``apply(params, x)``: stacked rows (n, ...) to (n,) or (n, outputs), or one row to () or (outputs,).
    likelihood
        "softmax", "bernoulli" (logits), "poisson" (log rates), or an object such as
        ``gaussfold.likelihoods.Gaussian(std)``. Several outputs are independent, except those of softmax.
    params
        Tree of parameters: the prior's mean.
    rank
        Number of factors p of the precision.
    prior_std
        Standard deviation of the prior: a number, or a tree of them with the structure of ``params``, each leaf a
        number or of the parameter's shape.
    n_samples
        Samples K per look, fresh ones each time.
    scheme
        "extragradient": look again from the trial belief, keep its covariance. "mirror-prox": the covariance is
        taken again, too. "explicit": one look. "extragradient-printed" and "mirror-prox-printed" are
        lrvga (141)-(143) and (137)-(140), for reproduction. An ``at`` of :mod:`gaussfold.rules` is what all of them but
        the first stand for: ``Extragradient("natural")`` is "mirror-prox", ``Prior()`` is "explicit".
    projection, inner_loops, gain
        As for :class:`gaussfold.LowRankGaussian`.
    block_size
        Rows per step. They share samples and a projection; a block that is not full waits, and counts in
        :attr:`posterior` all the same.
    seed
        Of all samples. The answer depends on it and on ``block_size``, never on how the rows were cut into calls.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)).astype("float32")
    >>> y = X[:, 0] - X[:, 1] > 0
    >>> model = LRVGA(lambda params, x: x @ params, "bernoulli", np.zeros(2, "float32"), rank=2, prior_std=3.0)
    >>> w = model.fit(X, y).belief.mean
    >>> bool(abs(w[0] / w[1] + 1.0) < 0.2)
    True
    """

    def __init__(
        self,
        apply: Apply,
        likelihood: str | Likelihood,
        params: Tree,
        *,
        rank: int = 10,
        prior_std: float | Tree = 1.0,
        n_samples: int = 10,
        scheme: str | Prior | Extragradient = "extragradient",
        projection: str = "eigen",
        inner_loops: int = 1,
        gain: str = "exact",
        block_size: int = 1,
        seed: int = 0,
    ) -> None:
        self.scheme, self.seed = scheme_name(scheme), whole("seed", seed, least=0)
        self.apply, self.likelihood = (
            likelihoods.function("apply", apply, "(params, x)"),
            likelihoods.resolve(likelihood),
        )
        if isinstance(self.likelihood, LearnedGaussian):
            remedy = "a noise level cannot be learned in one pass, since residuals of the first rows are not noise: "
            refuse("likelihood", likelihood, "a known noise level", remedy + "give gaussfold.likelihoods.Gaussian(std)")
        self.layout = layout_of(params)
        self.n_samples, self.block_size = whole("n_samples", n_samples), whole("block_size", block_size)
        mean = np.asarray(self.layout.flatten(params), dtype=np.float64)
        if not np.isfinite(mean).all():
            msg = "params: NaN or infinity found; only finite numbers are allowed"
            raise ValueError(msg)
        std = self._flat_std(prior_std)
        first = np.random.default_rng([self.seed, 0])
        self._belief = LowRankGaussian.independent(
            mean, std, rank, first, projection=projection, inner_loops=inner_loops, gain=gain
        )
        self._start()

    def _start(self) -> None:
        self._steps = 0
        self._loss = np.zeros(2)  # sum of -log predictive, and of weights
        self._waiting: Block | None = None

    @property
    def _model(self) -> Model:
        return Model(self.apply, self.likelihood, self.layout)

    @property
    def posterior(self) -> Posterior:
        """What has been learned so far, rows that wait for their block included; independent of what comes."""
        belief = self._belief.copy()
        if self._waiting is not None:
            self._step(belief, self._steps, self._waiting, 0)
        return Posterior(belief, self.layout, self.likelihood)

    @property
    def progressive_log_loss(self) -> float:
        """Mean log loss of predict-then-learn over the rows of full blocks; the samples of the step predict."""
        total, weight = self._loss
        return float(total / weight) if weight else math.nan

    def fit(self, X: Tree, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Posterior:
        """One pass over ``X, y`` or over ``data = (X, y)``; returns the posterior."""
        if y is None:
            X, y = X
        return self.partial_fit(X, y, sample_weight).posterior

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows in order, each once; all of them, or none on an error.

        Parameters
        ----------
        X
            Rows, (n, ...): whatever ``apply`` takes.
        y
            Labels. A row without any (NaN) is left out.
        sample_weight
            One number >= 0 per row; 0 leaves the row out.
        """
        fresh = self._checked(X, y, sample_weight)
        waiting = self._waiting
        first = 0 if waiting is None else -len(waiting[2])
        both = [fresh] if waiting is None else [waiting, fresh]
        rows, labels, weight = (np.concatenate(parts) for parts in zip(*both, strict=True))
        full = len(weight) - len(weight) % self.block_size
        belief, steps, loss = self._belief.copy(), self._steps, self._loss.copy()
        for start in range(0, full, self.block_size):
            part = slice(start, start + self.block_size)
            loss += self._step(belief, steps, (rows[part], labels[part], weight[part]), first + start)
            steps += 1
        self._belief, self._steps, self._loss = belief, steps, loss
        self._waiting = (rows[full:], labels[full:], weight[full:]) if full < len(weight) else None
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything but ``apply`` to a file; see :meth:`load`."""
        store.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], apply: Apply, params: Tree = None) -> Self:
        """Continue from a file: the same numbers as without a break.

        ``params``, a tree of the same structure, is needed only for trees with classes of their own (Flax, Equinox).
        """
        found = store.load(path)
        if not isinstance(found, cls):
            msg = f"path: {str(path)!r} holds a {type(found).__name__}, not an LRVGA; use gaussfold.load"
            raise store.StoreError(msg)
        found.apply = likelihoods.function("apply", apply, "(params, x)")
        if params is not None:
            found.layout.check(params)
            found.layout = layout_of(params)
        return found

    def state(self) -> Arrays:
        """Named arrays that hold everything learned."""
        arrays = self._belief.state() | {"steps": np.array(self._steps), "loss": self._loss.copy()}
        if self._waiting is not None:
            arrays |= dict(zip(("waiting_x", "waiting_y", "waiting_weight"), self._waiting, strict=True))
        return arrays

    def store_header(self) -> Document:
        """Parameters, as JSON."""
        return {
            "n_samples": self.n_samples,
            "block_size": self.block_size,
            "scheme": self.scheme,
            "seed": self.seed,
            "likelihood": self.likelihood.config(),
            "layout": self.layout.describe(),
        }

    @classmethod
    def from_store(cls, header: Document, arrays: Arrays) -> Self:
        """The model of a file, without its ``apply``."""
        self = cls.__new__(cls)
        self.apply = _missing
        self.n_samples = whole("n_samples", header["n_samples"])
        self.block_size = whole("block_size", header["block_size"])
        self.scheme, self.seed = one_of("scheme", header["scheme"], SCHEMES), whole("seed", header["seed"], least=0)
        self.likelihood = likelihoods.from_config(header["likelihood"])
        self.layout = layout_from(header["layout"])
        self._start()
        self._belief = LowRankGaussian.from_state(arrays)
        schema.equal("mean", self._belief.dim, self.layout.dim, "one parameter for each entry of the leaves")
        schema.check(arrays, PARTS)
        self._steps, self._loss = int(arrays["steps"]), arrays["loss"]
        if schema.together(arrays, ("waiting_x", "waiting_y", "waiting_weight")):
            _check_waiting(arrays)
            self._waiting = arrays["waiting_x"], arrays["waiting_y"], arrays["waiting_weight"]
        return self

    def _flat_std(self, prior_std: float | Tree) -> Array:
        if isinstance(prior_std, numbers.Real):
            return np.full(self.layout.dim, float(prior_std))
        if jax.tree.structure(prior_std) != self.layout.treedef:
            msg = f"prior_std={prior_std!r}: a number, or a tree with the structure of params, is needed"
            raise ValueError(msg)
        parts = zip(jax.tree.leaves(prior_std), self.layout.leaves, strict=True)
        return np.concatenate([np.broadcast_to(np.asarray(part, float), leaf.shape).ravel() for part, leaf in parts])

    def _checked(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Block:
        """The rows to learn from."""
        rows = self._checked_rows(X)
        outputs = interface(self._model, rows.shape[1:], rows.dtype)[1]
        labels = checked_labels(self.likelihood, y, outputs, len(rows))
        weight = _checked_weight(sample_weight, len(rows))
        missing = np.isnan(labels) if labels.ndim == 1 else np.isnan(labels).all(axis=1)
        learn = ~missing & (weight > 0.0)
        return rows[learn], labels[learn], weight[learn]

    def _checked_rows(self, X: ArrayLike) -> np.ndarray:
        rows = np.asarray(X)
        if rows.ndim == 0 or rows.dtype.kind not in "fiub":
            msg = f"X: {rows.dtype} of shape {rows.shape}; numbers of shape (n, ...) are needed"
            raise ValueError(msg)
        if rows.dtype.kind == "f" and not np.isfinite(rows).all():
            bad = int(np.argmax(~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)))
            msg = f"X: row {bad} has NaN or infinity; drop or impute it"
            raise ValueError(msg)
        if self._waiting is not None and rows.shape[1:] != self._waiting[0].shape[1:]:
            msg = f"X: rows of shape {rows.shape[1:]}; {self._waiting[0].shape[1:]} as before is needed"
            raise ValueError(msg)
        return rows

    def _step(self, belief: LowRankGaussian, number: int, block: Block, first: int) -> Array:
        """Step ``number`` on a block whose first row is ``first`` of the call; returns what it adds to the loss."""
        rng = np.random.default_rng([self.seed, 1 + number])
        stacked, _ = interface(self._model, block[0].shape[1:], block[0].dtype)
        task = Task(self._model, stacked, SCHEMES[self.scheme], self.block_size)
        each = step(belief, task, block, partial(self._draw, rng))
        if each is None:
            raise ValueError(_trouble(first, len(block[2])))
        top = each.max(axis=0)
        predictive = top + np.log(np.exp(each - top).mean(axis=0))
        return np.array([-block[2] @ predictive, block[2].sum()])

    def _draw(self, rng: np.random.Generator, precision: Precision, mean: Array) -> Array:
        """Ensemble sampling, lrvga Prop. 1."""
        size, factors = (self.n_samples, mean.size), (self.n_samples, len(precision.gram))
        return mean + precision.ensemble(rng.standard_normal(size), rng.standard_normal(factors))


def _check_waiting(arrays: Arrays) -> None:
    """Refuse rows of a model file that do not belong together; their shape is the network's affair."""
    count = arrays["waiting_weight"].size
    for name in ("waiting_x", "waiting_y"):
        array = arrays[name]
        schema.equal(name, array.shape[:1], (count,), "one row for each weight")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            schema.refuse(name, "NaN or infinity", "finite numbers are needed")


def _checked_weight(sample_weight: ArrayLike | None, rows: int) -> Array:
    weight = np.ones(rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (rows,):
        msg = f"sample_weight: shape {weight.shape}; ({rows},) is needed"
        raise ValueError(msg)
    fair = np.isfinite(weight) & (weight >= 0.0)
    if not fair.all():
        bad = int(np.argmin(fair))
        msg = f"sample_weight: row {bad} is {weight[bad]}; finite numbers >= 0 are allowed"
        raise ValueError(msg)
    return weight


def _missing(*_: Tree) -> NoReturn:
    msg = "apply: a model file does not hold it; load with gaussfold.deep.LRVGA.load(path, apply)"
    raise ValueError(msg)


def _trouble(first: int, count: int) -> str:
    where = f"row {max(first, 0)}" if count == 1 else f"rows {max(first, 0)} to {first + count - 1}"
    return (
        f"apply: NaN or infinity at {where} of X, or in derivatives there, for parameters drawn from the belief, which "
        "is as it was; scale the inputs, or use a smaller prior_std"
    )
