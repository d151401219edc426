"""The model: a covariance, a likelihood and a rule, on one of three priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from gaussfold.gp import checks, hyper, plots, storage, streamed, times
from gaussfold.gp.components import Component, components
from gaussfold.gp.constraints import Constraints, HyperPrior
from gaussfold.gp.covariances.base import refuse_unknown
from gaussfold.gp.evidence import log_evidence
from gaussfold.gp.extras import Extras, extras_of
from gaussfold.gp.inference import start
from gaussfold.gp.learning import Learned, Options, learn
from gaussfold.gp.objective import Gradient, energy_gradient
from gaussfold.gp.online import Online
from gaussfold.gp.predicting import Predicting
from gaussfold.gp.summary import one_line, table
from gaussfold.gp.threads import fitting_threads
from gaussfold.types import Array, ArrayLike


class GaussianProcess(Predicting):
    """A Gaussian process with any likelihood: bayes-newton, algorithms 1 to 3.

    Each iteration looks at the posterior marginal of every observation, replaces its likelihood by the Gaussian site
    that ``rule`` and ``curvature`` say, and multiplies the prior by all sites at once.

    Parameters
    ----------
    covariance : Covariance or list of them
        Of the latent function; for a likelihood of several latents a list with one each.
    likelihood : str or likelihood
        "bernoulli", "poisson", or any object of `gaussfold.likelihoods`.
    rule : str or rule object, default=None
        "newton" (Laplace), "taylor", "vi", "ep", "pl", "pl2", or an object, ``gaussfold.rules.EP(alpha=0.5)``. None is
        "vi", but for noise that changes "ep", whose intervals cover what they say.
    curvature : str or policy, default=None
        "exact", "heuristic", "gauss-newton", "quasi-newton", "riemannian". With a likelihood that is not log-concave,
        "exact" can make negative site precisions; they are counted in ``result_``. None is "exact", since checked steps
        always leave a posterior and only its fixed point is a minimum of the energy; for batches, whose steps cannot be
        checked, it is "heuristic" unless the likelihood is log-concave.
    structure : {"dense", "sparse", "markov"}, default="dense"
        Exact with cost N³; inducing inputs with cost N M²; Kalman filter with cost N, for one input column, or several
        with a `SpaceTime` covariance.
    inducing : int or array of shape (M, d), default=None
        For "sparse": how many inducing inputs to draw from X (None: 100), or the inputs. For "markov" with `SpaceTime`:
        how many places, or these, without time (None: all places of X, which is exact).
    damping : float, default=1.0
        Longest step ρ of (9), in (0, 1]. Steps are checked and shortened, see `gaussfold.gp.walk`, unless an exact
        number of iterations is asked for.
    max_iter : int, default=100
        Most iterations of one fit; one that has not converged by then warns (`NotConvergedWarning`).
    tol : float, default=1e-6
        A fit has converged when the energy is to change by less than ``tol * (1 + |energy|)``, and 200 tol nats.
    start_precision : float, default=None
        Precision of every site before the first iteration (around zero), ≥ 0. None starts at the mode of every row's
        own posterior, or at 0.01 where an exact number of iterations is asked for.
    cubature : str or rule of `gaussfold.expectations`, default=None
        For expectations that have no closed form. None chooses by the number of latents.
    batch_size : int, default=None
        For "sparse": rows per iteration, drawn anew each time; the sites are then tied to one factor of the inducing
        variables. Steps become shorter as 2/(t + 2), and with vi they are checked on the batch. Curvatures that
        remember every site ("quasi-newton", "riemannian") have nothing to remember here and are refused.
    time_unit : {"W", "D", "h", "m", "s", "ms", "us", "ns"}, default=None
        For dates as inputs (NumPy's of any unit, pandas', or Python's): what the length scales are counted in. None
        takes the unit of a NumPy array fitted on, and days for what is finer than a second or comes from elsewhere.
    mean : Mean or list of them, default=None
        Mean function of the latents, `ConstantMean`, `LinearMean` or `BasisMean`; its weights are learned with the
        hyperparameters. None: zero.
    mixing : array of shape (D, Q), default=None
        The latents are mixtures ``f = W g`` of Q processes with a covariance each (coregionalisation: outputs that
        learn from each other); W is learned with the hyperparameters. None: each latent is a process of its own.
    verbose : bool, default=None
        Whether to show a progress bar; None: on a terminal.
    random_state : int or Generator, default=None
        For choosing inducing inputs and batches, and for `sample_posterior`.

    Attributes
    ----------
    sites_ : Sites
        Natural parameters of every site, in the order of the data.
    marginals_ : Marginals
        Posterior mean (N, D) and covariance (N, D, D) of the latents at X.
    result_ : FitResult
        Iterations, energy, history, and sites that are not positive.

    Examples
    --------
    >>> X = np.linspace(0.0, 6.0, 30)
    >>> y = (np.sin(X) > 0.3).astype(float)
    >>> from gaussfold.gp import Matern32
    >>> gp = GaussianProcess(Matern32(2.0, 1.0), "bernoulli", structure="markov").fit(X, y)
    >>> gp.predict([1.5, 4.5]).round(2)
    array([0.86, 0.11])
    >>> bool(gp.result_.converged)
    True
    """

    # Hyperparameters

    def parameters(self) -> dict[str, float]:
        """Names and values of all hyperparameters; names go into ``fixed`` of `learn_hyperparameters`."""
        return hyper.parameters(self.covariances, self.likelihood)

    def set_parameters(self, values: Mapping[str, float]) -> Self:
        """Give hyperparameters other values, by the names of `parameters`; a fitted model settles anew."""
        refuse_unknown(values, self.parameters())
        covariances, likelihood = hyper.replaced(self.covariances, self.likelihood, values)
        if self._online is not None or self.is_fitted:
            self._fitted()
        before = dict(vars(self))
        try:
            self.covariances, self.likelihood = covariances, likelihood
            if self.is_fitted:
                self._online = None
                self.refuse_if_gone()
                self.prior_ = self.prior_at(self.X_, self.extras_, self.prior_.Z)
                with np.errstate(over="ignore", invalid="ignore"):  # refused at the end
                    start(self, chosen=True)
                    return self.resume()
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise
        return self

    def log_marginal_likelihood(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        *,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """``log p(Y)`` at the present hyperparameters, without fitting this model.

        Exact for normal noise, and on the Markov prior one pass forward; else minus the energy that a fit ends at.
        """
        numbers, _ = times.read(X, "X", self.time_unit, None)
        rows = checks.inputs(numbers)
        values = checks.labels(Y, len(rows), self.likelihood)
        return log_evidence(self, rows, values, extras_of(offset, sample_weight, len(rows), self.latents, self.rule))

    def energy_gradient(self, *, settled: bool = False) -> Gradient:
        """Derivatives of `energy` at fixed sites, for the log of every hyperparameter and for the inducing inputs.

        ``settled=True`` promises that the sites are at their fixed point (vi or ep with exact curvature, converged),
        where the chain through the marginals is zero; that saves about half the work.
        """
        self._fitted()
        return energy_gradient(self, settled=settled)

    def learn_hyperparameters(
        self,
        optimizer: str = "lbfgs",
        *,
        max_iter: int = 50,
        fixed: Sequence[str] = (),
        learn_inducing: bool = True,
        restarts: int | None = None,
        subset: int | None = 5000,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        priors: Mapping[str, HyperPrior] | None = None,
        tied: Sequence[Sequence[str]] = (),
    ) -> Learned:
        """Lower the energy by changing the hyperparameters, with inference; see `gaussfold.gp.learning`.

        Names in ``fixed`` stay as they are. ``restarts`` are searches beyond the first, from starts that the data
        suggest (`gaussfold.gp.restarts`); None: one up to 1000 rows; 0: from the present values and nowhere else. A
        sparse model of more than twice ``subset`` rows learns from so many, with vi then from 8 ``max_iter`` batches
        of all of them, and fits all (`gaussfold.gp.batch_learning`); None: every step looks at all rows. With
        ``batch_size`` set all learning is from such batches.
        ``bounds`` are limits (low, high) and ``priors`` distributions (`LogNormal`, `GammaPrior`) by name; every group
        of names in ``tied`` keeps one value, that of its first. Names are those of `parameters`, in ``fixed`` also
        "mean" and "mixing".
        """
        self._fitted()
        known = Constraints(bounds or {}, priors or {}, tied)
        before = dict(vars(self))
        try:
            with fitting_threads(self.matrix_rows):
                return learn(self, optimizer, Options(max_iter, fixed, learn_inducing, restarts, subset, known))
        except BaseException:  # whole or not at all, as fit
            vars(self).clear()
            vars(self).update(before)
            raise

    # Looking

    def __repr__(self) -> str:
        return one_line(self)

    def summary(self) -> str:
        """What the model is, how the fit went, and its hyperparameters, as a table for the eye."""
        self._fitted()
        return table(self)

    def components(self, X: ArrayLike) -> list[Component]:
        """Posterior of every part of a sum of covariances (trend, season, rest), each with mean and std at new inputs.

        On the dense and the Markov prior the means add up to the latent's (without its mean function and offset); a
        sparse prior gives every part inducing variables of its own.
        """
        self._fitted()
        self.refuse_if_gone()
        return components(self, self._inputs(X, columns=self.X_.shape[1]))

    def plot(self, X: ArrayLike | None = None, *, ax: Any = None) -> Any:
        """Draw data, median and bands of y over one input column (at X: a forecast, say), on Matplotlib's axes.

        Several outputs have axes each, one below the other, and ``ax`` is a list of so many. Offsets are not in the
        curve, since nobody knows them between rows.
        """
        self._fitted()
        return plots.plot(self, X, ax)

    def plot_components(self, X: ArrayLike | None = None, *, axes: Any = None) -> Any:
        """Draw every part of a sum of covariances (trend, season, rest) with its own bands, one below the other."""
        self._fitted()
        self.refuse_if_gone()
        return plots.plot_components(self, X, axes)

    # Streaming

    def partial_fit(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        *,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        lag: int = 100,
        iterations: int = 3,
        keep_history: bool = True,
    ) -> Self:
        """Take new rows in without refitting, at the present hyperparameters: Markov and sparse structures.

        A Markov model filters them in, and a smoother of fixed lag catches up (`gaussfold.gp.online`). A sparse one
        makes the rows of the last call one factor of its inducing variables, which move to where the rows are unless
        they were given as an array, and fits the new rows on top of it (`gaussfold.gp.streamed`): memory does not grow.

        Parameters
        ----------
        X, Y : arrays
            Rows. Markov: not before the start of the window, which are the last ``lag`` points seen.
        offset, sample_weight : arrays
            As `fit` takes them.
        lag : int
            Markov: how many past points the fixed-lag smoother looks at again.
        iterations : int
            Markov: visits to the sites of the window.
        keep_history : bool
            Markov: False forgets points that have left the window but for one state, so that memory does not grow;
            earlier times can then no longer be predicted. Once forgotten they stay so.
        """
        checks.streams(self.structure, self.batch_size, in_space=self.in_space)
        rows, values, clock = self._more(X, Y)
        extras = extras_of(offset, sample_weight, len(rows), self.latents, self.rule)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is not finite, and refused
            if self.structure == "sparse":
                return self._absorb(rows, values, extras, clock)
            online = Online.start(self) if self._online is None else self._online
            online.add(rows, values, extras, lag, iterations, keep=keep_history)
        self._online, self.clock_, self._is_stale = online, clock, True
        return self

    def _more(self, X: ArrayLike, Y: ArrayLike) -> tuple[Array, Array, times.Clock | None]:
        """New rows of a stream, checked against those before."""
        numbers, clock = times.read(X, "X", self.time_unit, self.clock_)
        if self._online is not None or self.is_fitted:
            times.check_kind(clock, self.clock_, "X")
        columns = 1 if self.structure == "markov" else self.X_.shape[1] if self.is_fitted else None
        rows = checks.inputs(numbers, columns=columns)
        return rows, checks.labels(Y, len(rows), self.likelihood), clock

    def _absorb(self, rows: Array, values: Array, extras: Extras, clock: times.Clock | None) -> Self:
        """New rows of a sparse stream, whole or not at all."""
        before = dict(vars(self))
        try:
            self.clock_ = clock
            self.means = None if self.means is None else tuple(m and m.on(rows.shape[1]) for m in self.means)
            streamed.absorb(self, rows, values, extras)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise
        return self

    # Storing

    def state(self) -> dict[str, np.ndarray]:
        """Data, sites and inducing inputs as named arrays."""
        if self._is_stale:
            self._fitted()
        return storage.state(self, self.memory_, None if self._online is None else self._online.state)

    def store_header(self) -> dict[str, object]:
        """Covariance, likelihood, rule and options, as JSON can hold them."""
        return storage.header(self, self.rng, None if self._online is None else self._online.state)

    @classmethod
    def from_store(cls, described: dict[str, object], arrays: dict[str, np.ndarray]) -> Self:
        """Undo `state` and `store_header`."""
        self = storage.blank(cls, described, arrays)
        past = storage.finish(self, described, arrays)
        if past is not None:
            self._online = Online.resumed(self, past.anchor, past.window, dropped=past.dropped)
        return self
