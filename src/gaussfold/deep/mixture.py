"""Several posteriors as one: from several starts, by any method, plain networks among them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Self, Unpack

import numpy as np

from gaussfold import schema, store
from gaussfold.checks import refuse
from gaussfold.deep.method import Method
from gaussfold.deep.options import Length
from gaussfold.deep.posterior import LikelihoodOrName, Posterior, generator
from gaussfold.deep.prediction import Prediction, together
from gaussfold.deep.types import Apply, Arrays, Batch, Document, Seed, Tree
from gaussfold.types import ArrayLike


class MultiPosterior:
    """A mixture of posteriors with equal weights: several trainings, several modes.

    Parameters
    ----------
    parts
        Posteriors over trees with the same leaves.

    Examples
    --------
    >>> import gaussfold as gf, numpy as np
    >>> tree = {"w": np.zeros(1, np.float32)}
    >>> parts = [gf.deep.Posterior(gf.FactorGaussian([m], np.zeros((1, 1)), [0.01]), tree) for m in (-1.0, 1.0)]
    >>> both = MultiPosterior(parts)
    >>> both.std()["w"].round(3)  # within and between them
    Array([1.005], dtype=float32)
    """

    def __init__(self, parts: Sequence[Posterior]) -> None:
        self.parts = tuple(parts)
        if not self.parts:
            msg = "parts: empty; at least one posterior is needed"
            raise ValueError(msg)
        for part in self.parts[1:]:
            if part.layout != self.parts[0].layout:
                msg = "parts: mismatched tree: all posteriors of a mixture must have the same leaves"
                raise ValueError(msg)
        self.layout = self.parts[0].layout

    def __repr__(self) -> str:
        return f"MultiPosterior({len(self.parts)} × {self.parts[0]!r})"

    @property
    def mean(self) -> Tree:
        """The mean of the parts' means; a network there need not be a good one."""
        each = np.mean([part.belief.mean for part in self.parts], axis=0)
        return self.layout.unflatten(each.astype(self.layout.dtype))

    def std(self) -> Tree:
        """Standard deviation of each parameter, within the parts and between them."""
        within = np.mean([part.belief.variance() for part in self.parts], axis=0)
        between = np.var([part.belief.mean for part in self.parts], axis=0)
        return self.layout.unflatten(np.sqrt(within + between).astype(self.layout.dtype))

    def sample(self, rng: Seed, n: int) -> list[Tree]:
        """Draw n networks, each from a part chosen at random."""
        draw = generator(rng)
        counts = np.bincount(draw.integers(len(self.parts), size=n), minlength=len(self.parts))
        found = [
            tree for part, count in zip(self.parts, counts, strict=True) if count for tree in part.sample(draw, count)
        ]
        return [found[i] for i in draw.permutation(n)]

    def predict(
        self,
        apply: Apply,
        X: Tree,
        n_samples: int = 100,
        *,
        rng: Seed = 0,
        likelihood: LikelihoodOrName = None,
        method: str = "samples",
    ) -> Prediction:
        """As :meth:`Posterior.predict`, with the same number of networks from every part (n_samples in all).

        ``method`` is "samples" or "mean": linearised outputs are normal for each part, not for all of them together.
        """
        if method == "linearised":
            refuse("method", method, "'samples' or 'mean'", "outputs of several posteriors together are not normal")
        each = -(-n_samples // len(self.parts))
        draw = generator(rng)
        return together(
            [part.predict(apply, X, each, rng=draw, likelihood=likelihood, method=method) for part in self.parts]
        )

    def like(self, params: Tree) -> Self:
        """The same on trees of the structure of ``params``."""
        return type(self)([part.like(params) for part in self.parts])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file; :func:`gaussfold.deep.load` or :func:`gaussfold.load` reads it."""
        store.save(self, path)

    def state(self) -> Arrays:
        """The parts' arrays, by number."""
        return {f"{i}.{name}": array for i, part in enumerate(self.parts) for name, array in part.state().items()}

    def store_header(self) -> Document:
        """The parts' headers."""
        return {"parts": [part.store_header() for part in self.parts]}

    @classmethod
    def from_store(cls, header: Document, arrays: Arrays) -> Self:
        """The mixture of a file."""
        if not isinstance(header["parts"], list):
            schema.refuse("parts", f"{header['parts']!r:.60}", "a list is needed")
        own = [
            {name.partition(".")[2]: array for name, array in arrays.items() if name.partition(".")[0] == str(i)}
            for i in range(len(header["parts"]))
        ]
        return cls([Posterior.from_store(each, mine) for each, mine in zip(header["parts"], own, strict=True)])


class Ensemble:
    """Several trainings, each by a method of its own, and the mixture of what they find.

    Parameters
    ----------
    methods
        Such as ``[VIFA(function, start, seed=k) for k, start in enumerate(starts)]``; :class:`gaussfold.deep.MAP` is
        plain training. They may differ in kind, not in their tree.
    """

    def __init__(self, methods: Sequence[Method]) -> None:
        self.methods = tuple(methods)
        if not self.methods:
            msg = "methods: empty; give one method per training"
            raise ValueError(msg)
        for method in self.methods[1:]:
            self.methods[0].layout.check(method.layout.unflatten(method.centre), "methods")

    def fit(self, data: Batch, y: ArrayLike | None = None, **length: Unpack[Length]) -> MultiPosterior:
        """Train every method on the same data; arguments as for :meth:`VIFA.fit`."""
        for method in self.methods:
            method.fit(data, y, **length)
        return self.posterior

    @property
    def posterior(self) -> MultiPosterior:
        """The mixture as it stands."""
        return MultiPosterior([method.posterior for method in self.methods])

    def __repr__(self) -> str:
        return f"Ensemble({', '.join(map(repr, self.methods))})"


def load(path: str | os.PathLike[str], like: Tree = None) -> Posterior | MultiPosterior:
    """Read a posterior, or a mixture of them, from a file.

    Parameters
    ----------
    path
        A file written by :meth:`Posterior.save` or :meth:`MultiPosterior.save`.
    like
        A tree of parameters. Trees of dicts, lists and tuples can be rebuilt without it; it is needed for trees with
        classes of their own (Flax, Equinox), which a file without pickle cannot hold, and checked in any case.
    """
    found = store.load(path)
    if not isinstance(found, Posterior | MultiPosterior):
        msg = f"path: {str(path)!r} holds a {type(found).__name__}, not a Posterior; use gaussfold.load"
        raise store.StoreError(msg)
    return found if like is None else found.like(like)
