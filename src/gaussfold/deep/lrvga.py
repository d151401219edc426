"""L-RVGA for any network, in one pass and without a learning rate: lrvga §4.2."""

from __future__ import annotations

import math
import numbers
import os
from dataclasses import asdict
from functools import partial
from typing import Self

import jax
import numpy as np

from gaussfold import schema, store
from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.beliefs.lowrank.options import check_rank
from gaussfold.checks import one_of, refuse, whole
from gaussfold.deep import likelihoods
from gaussfold.deep.extragradient import SCHEMES, Block, Task, scheme_name, step
from gaussfold.deep.families import Likelihood, form_of
from gaussfold.deep.fisher import Model, checked_labels, interface
from gaussfold.deep.onepass import Ageing, OnePass, usual_std, without_noise
from gaussfold.deep.posterior import Posterior
from gaussfold.deep.rowchecks import check_std, check_waiting, checked_weight, missing_apply, refuse_unless, trouble
from gaussfold.deep.stepping import Stepper
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
USUAL: Document = {"n_samples": 10, "scheme": "extragradient", "projection": "eigen", "inner_loops": 1}
"""Of looks at samples."""
FEW, LARGE = 20, 100_000
"""Factors of a compiled pass; twice as many where a row brings few of them and memory is no question."""
LOOKS = {"mean": False, "samples": True}
"""Where the network is looked at, and whether that needs samples."""


class LRVGA:
    """A Gaussian posterior over the parameters of any JAX function, learned in one pass without a learning rate.

    The network is linearised at the mean of the belief before each row, and everything runs in one compiled loop
    (:mod:`gaussfold.deep.linearised`); ``linearise="samples"`` is the paper's method, which looks at networks drawn
    from the belief.

    Parameters
    ----------
    apply
        ``apply(params, x)``: stacked rows (n, ...) to (n,) or (n, outputs), or one row to () or (outputs,).
    likelihood
        "softmax", "bernoulli" (logits), "poisson" (log rates), "gaussian" (its noise learned from what rows leave
        unexplained), or an object such as ``gaussfold.likelihoods.Gaussian(std)``. Several outputs are independent,
        except those of softmax.
    params
        Tree of parameters: the prior's mean.
    linearise
        "mean", or "samples" (lrvga §4.2), to which alone ``n_samples``, ``scheme``, ``projection``, ``inner_loops``,
        ``gain`` and ``block_size`` belong.
    rank
        Number of factors p of the precision; by default 20, or 40 below 100,000 parameters and not for softmax (10 with
        samples). 0 is a diagonal. With "mean" there is room for as many again, so that rows are projected together.
    prior_std
        Standard deviation of the prior: a number, or a tree of them with the structure of ``params``, each leaf a
        number or of the parameter's shape. By default twice the scale of each leaf (:mod:`gaussfold.deep.scales`),
        and 1 with samples.
    forgetting, random_walk
        Between rows the precision keeps this share, the rest being the prior's; or every parameter takes a random step
        of this standard deviation, in units of its prior's. With "mean" only, as is ``robust``.
    robust
        Rows further from their prediction than about so many standard deviations count less; normal noise only.
    n_samples
        Samples K per look, fresh ones each time; 10 by default.
    scheme
        "extragradient": look again from the trial belief, keep its covariance. "mirror-prox": the covariance is
        taken again, too. "explicit": one look. "extragradient-printed" and "mirror-prox-printed" are
        lrvga (141)-(143) and (137)-(140), for reproduction. An ``at`` of :mod:`gaussfold.rules` is what all of them but
        the first stand for: ``Extragradient("natural")`` is "mirror-prox", ``Prior()`` is "explicit".
    projection, inner_loops, gain
        As for :class:`gaussfold.LowRankGaussian`.
    block_size
        Rows per step, 1 by default. They share samples and a projection; a block that is not full waits, and counts
        in :attr:`posterior` all the same.
    seed
        Of all samples. The answer depends on it and on ``block_size``, never on how the rows were cut into calls.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)).astype("float32")
    >>> y = X[:, 0] - X[:, 1] > 0
    >>> model = LRVGA(lambda params, x: x @ params, "bernoulli", np.zeros(2, "float32"), prior_std=3.0)
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
        linearise: str = "mean",
        rank: int | None = None,
        prior_std: float | Tree | None = None,
        forgetting: float = 1.0,
        random_walk: float = 0.0,
        robust: float | None = None,
        n_samples: int | None = None,
        scheme: str | Prior | Extragradient | None = None,
        projection: str | None = None,
        inner_loops: int | None = None,
        gain: str | None = None,
        block_size: int | None = None,
        seed: int = 0,
    ) -> None:
        self.linearise = one_of("linearise", linearise, LOOKS)
        sampling = LOOKS[self.linearise]
        given = {"n_samples": n_samples, "scheme": scheme, "projection": projection, "inner_loops": inner_loops}
        refuse_unless(sampling, given | {"gain": gain, "block_size": block_size})
        looks = USUAL | {name: value for name, value in given.items() if value is not None}
        self.scheme, self.seed = scheme_name(looks["scheme"]), whole("seed", seed, least=0)
        self.apply, self.likelihood = (
            likelihoods.function("apply", apply, "(params, x)"),
            likelihoods.resolve(likelihood),
        )
        params, noise = without_noise(self.likelihood, params, sampling)
        self.layout = layout_of(params)
        self.n_samples = whole("n_samples", looks["n_samples"])
        self.block_size = whole("block_size", 1 if block_size is None else block_size)
        mean = np.asarray(self.layout.flatten(params), dtype=np.float64)
        if not np.isfinite(mean).all():
            msg = "params: NaN or infinity found; only finite numbers are allowed"
            raise ValueError(msg)
        self._ageing = Ageing(forgetting, random_walk, robust).checked(self.likelihood, sampling)
        self._start()
        if sampling:
            self._belief = LowRankGaussian.independent(
                mean, self._flat_std(1.0 if prior_std is None else prior_std), 10 if rank is None else rank,
                np.random.default_rng([self.seed, 0]), projection=looks["projection"],
                inner_loops=looks["inner_loops"], gain=gain or "exact",
            )  # fmt: skip
        else:
            self._pass: OnePass | None = self._prior(mean, prior_std, rank, noise)

    def _prior(self, mean: Array, prior_std: float | Tree | None, rank: int | None, noise: float | None) -> OnePass:
        """The belief before the first row of a compiled pass."""
        std = usual_std(self.layout, mean) if prior_std is None else self._flat_std(prior_std)
        check_std(std)
        usual = FEW if form_of(self.likelihood).classes or mean.size > LARGE else 2 * FEW
        most = check_rank(min(usual, mean.size) if rank is None else rank, mean.size, fewest=0)
        return OnePass(mean, std, most, noise, self._ageing)

    def _start(self) -> None:
        self._steps = 0
        self._loss = np.zeros(2)  # sum of -log predictive, and of weights
        self._waiting: Block | None = None
        self._pass = None

    @property
    def _model(self) -> Model:
        return Model(self.apply, self.likelihood, self.layout)

    @property
    def posterior(self) -> Posterior:
        """What has been learned so far, rows that wait for their block included; independent of what comes."""
        if self._pass is not None:
            return self._pass.posterior(self.layout, self.likelihood)
        belief = self._belief.copy()
        if self._waiting is not None:
            self._step(belief, self._steps, self._waiting, 0)
        return Posterior(belief, self.layout, self.likelihood)

    @property
    def progressive_log_loss(self) -> float:
        """Mean log loss of predict-then-learn over the rows of full blocks; the samples of the step predict."""
        total, weight = self._loss
        return float(total / weight) if weight else math.nan

    def fit(
        self, X: Tree, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *, passes: int = 1
    ) -> Posterior:
        """One pass over ``X, y`` or over ``data = (X, y)``; returns the posterior.

        With more ``passes`` each row counts 1/passes in each of them, never more than once in all: the network has
        settled somewhat before most of what a row says is linearised. The later ones go through the rows in orders of
        their own.
        """
        if y is None:
            X, y = X
        if whole("passes", passes) == 1:
            return self.partial_fit(X, y, sample_weight).posterior
        if self._pass is None or self._ageing.ages:
            refuse("passes", passes, "1", "several passes need linearise='mean' without forgetting or random_walk")
        self._learn_rows(self._checked(X, y, sample_weight), passes)
        return self.posterior

    def stepper(self) -> Stepper:
        """The pass as pure functions of a state, for a loop of one's own: a batch ``(X, y)`` is learned row by row.

        It begins with what has been learned so far. Rows are not checked: a batch with one that is not finite is
        skipped, and its loss NaN.
        """
        if self._pass is None:
            refuse("linearise", self.linearise, "'mean'", "looks at samples have no compiled loop; use partial_fit")
        return self._pass.stepper(self._model, form_of(self.likelihood).classes)

    def _learn_rows(self, rows: Block, passes: int = 1) -> None:
        """In the compiled pass: all of them or none."""
        assert self._pass is not None
        total, bad = self._pass.learn(self._model, rows, passes, self.seed)
        if bad is not None:
            raise ValueError(trouble(bad, 1))
        self._loss = self._loss + np.array([-total, rows[2].sum()])
        self._steps += len(rows[2])

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
        if self._pass is not None:
            self._learn_rows(fresh)
            return self
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
        learned = self._belief.state() if self._pass is None else self._pass.state()
        arrays = learned | {"steps": np.array(self._steps), "loss": self._loss.copy()}
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
            "linearise": self.linearise,
            "ageing": asdict(self._ageing),
        }

    @classmethod
    def from_store(cls, header: Document, arrays: Arrays) -> Self:
        """The model of a file, without its ``apply``."""
        self = cls.__new__(cls)
        self.apply = missing_apply
        self.n_samples = whole("n_samples", header["n_samples"])
        self.block_size = whole("block_size", header["block_size"])
        self.scheme, self.seed = one_of("scheme", header["scheme"], SCHEMES), whole("seed", header["seed"], least=0)
        self.likelihood = likelihoods.from_config(header["likelihood"])
        self.layout = layout_from(header["layout"])
        self._start()
        self.linearise = one_of("linearise", header.get("linearise", "samples"), LOOKS)
        self._ageing = Ageing(**header.get("ageing", {})).checked(self.likelihood, LOOKS[self.linearise])
        if LOOKS[self.linearise]:
            self._belief = LowRankGaussian.from_state(arrays)
            schema.equal("mean", self._belief.dim, self.layout.dim, "one parameter for each entry of the leaves")
        else:
            self._pass = OnePass.from_state(arrays, self._ageing)
            size = len(arrays["pass_mean"])
            schema.equal("pass_mean", size, self.layout.dim, "one parameter for each entry of the leaves")
        schema.check(arrays, PARTS)
        self._steps, self._loss = int(arrays["steps"]), arrays["loss"]
        if schema.together(arrays, ("waiting_x", "waiting_y", "waiting_weight")):
            check_waiting(arrays)
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
        weight = checked_weight(sample_weight, len(rows))
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
            raise ValueError(trouble(first, len(block[2])))
        top = each.max(axis=0)
        predictive = top + np.log(np.exp(each - top).mean(axis=0))
        return np.array([-block[2] @ predictive, block[2].sum()])

    def _draw(self, rng: np.random.Generator, precision: Precision, mean: Array) -> Array:
        """Ensemble sampling, lrvga Prop. 1."""
        size, factors = (self.n_samples, mean.size), (self.n_samples, len(precision.gram))
        return mean + precision.ensemble(rng.standard_normal(size), rng.standard_normal(factors))
