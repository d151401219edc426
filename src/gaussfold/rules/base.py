"""What every rule is: the site it makes, where it looks, and what follows from that for energies and curvatures.

A rule says what it is by class attributes, where it is defined; nobody asks for its type. To add one, subclass
:class:`StreamRule` (or :class:`SiteRule`, if it is only for sites that are visited again), set the attributes that
differ from the defaults here, and add a line to :mod:`gaussfold.rules.catalogue`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from gaussfold.engine import seam
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike, Moments, Record, Site, VectorSite


class View(NamedTuple):
    """What a rule sees of N observations, none of them wholly missing: labels and marginals (cavities for ep).

    Examples
    --------
    >>> import numpy as np
    >>> from gaussfold.likelihoods import Softmax
    >>> from gaussfold.rules import VI
    >>> seen = View(Softmax(3), Y=np.array([[2.0]]), mean=np.zeros((1, 3)), cov=np.eye(3)[None])
    >>> VI().site_several(seen).gradient.round(3)
    array([[-0.333, -0.333,  0.667]])
    """

    likelihood: VectorLikelihood
    Y: Array
    """(N, P)"""
    mean: Array
    """(N, D)"""
    cov: Array
    """(N, D, D)"""
    cubature: AnyCubature = None


class SiteRule(ABC):
    """A rule for sites on R^D; the parent of all of them.

    Attributes
    ----------
    name : str
        The name it goes by.
    alpha : float
        Power of the likelihood that it looks at; 1 but for power ep.
    curvatures : tuple of str
        Names of the curvature policies that are defined for it, see :mod:`gaussfold.rules.curvature`.
    looks_at_cavity : bool
        Whether it looks from the posterior *without* (the fraction alpha of) the observation's own site.
    looks_at_mean : bool
        Whether it looks at the mean of the marginal alone, so that its energy is (17), Laplace's.
    energy_over_cavity : bool
        Whether its energy is power ep's (27), over the cavity. If neither this nor the one before, it is (16).
    is_stationary : bool
        Whether its energy is stationary in the sites once these have settled (with exact curvature): hyperparameters
        then see the energy's profile, with inference run to its end inside every evaluation.
    descends : bool
        Whether (9) with exact curvature is a natural gradient of its own energy, so that a rise means a long step.
    finds_mode : bool
        Whether (9) looks for the mode: the gradient of its site is that of log p at the mean, whatever the curvature.
    linearises : bool
        Whether it stands on the conditional mean and variance of y, which then must be finite.
    needs_bound : bool
        Whether it needs the likelihood to have a quadratic bound.
    needs_log_concave : bool
        Whether the site it makes at the belief before can cancel that belief unless the likelihood is log-concave.
    settles : bool
        Whether there is a site that it makes at the very belief which that leads to: a stream can look there.

    Examples
    --------
    >>> from gaussfold.rules import PL2, VI
    >>> PL2().settles, VI().is_stationary
    (False, True)
    >>> PL2().curvatures
    ('exact', 'heuristic', 'gauss-newton', 'quasi-newton', 'riemannian')
    """

    # A rule's file says which of these are otherwise for it: files of rules begin alike.

    name: ClassVar[str]
    alpha: float = 1.0
    curvatures: ClassVar[tuple[str, ...]] = ("exact",)
    looks_at_cavity: ClassVar[bool] = False
    looks_at_mean: ClassVar[bool] = False
    energy_over_cavity: ClassVar[bool] = False
    is_stationary: ClassVar[bool] = False
    descends: ClassVar[bool] = False
    finds_mode: ClassVar[bool] = False
    linearises: ClassVar[bool] = False
    needs_bound: ClassVar[bool] = False
    needs_log_concave: ClassVar[bool] = False
    settles: ClassVar[bool] = True

    @property
    def takes_classes(self) -> bool:
        """Whether the engine's loops over rows with classes are this rule."""
        return False

    @abstractmethod
    def site_several(self, view: View) -> VectorSite:
        """Gradient and curvature of the surrogate log likelihood of f in R^D."""

    @abstractmethod
    def energy_several(self, view: View) -> Array:
        """The likelihood's share of the energy, per row."""

    def gauss_newton_several(self, view: View) -> VectorSite:
        """The exact gradient with a curvature of first derivatives; the site itself if that is so already."""
        return self.site_several(view)

    def slopes_several(self, view: View) -> tuple[Array, Array | None]:
        """Derivatives of the target in the mean and in the covariance (None: it does not depend on that)."""
        msg = f"rule={self.name!r} has no slopes for {view.likelihood}: curvature='quasi-newton' is not defined for it"
        raise ValueError(msg)


class StreamRule(SiteRule):
    """A rule of the streaming update too: its site for one latent, and the record by which the engine knows it.

    With the functions of ``engine.rules`` registered for that record it runs compiled, else in Python.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> from gaussfold.types import Moments, Site
    >>> @dataclass(frozen=True)
    ... class TwoPoints(gf.rules.StreamRule):  # averages over two points, a standard deviation to either side
    ...     name = "two-points"
    ...     def site(self, likelihood, y, moments):
    ...         std = np.sqrt(moments.variance)
    ...         low, high = (likelihood.derivatives(y, moments.mean + t * std) for t in (-1.0, 1.0))
    ...         return Site((low[0] + high[0]) / 2, (low[1] + high[1]) / 2)
    ...     def site_several(self, view):
    ...         raise NotImplementedError("one latent only")
    ...     def energy_several(self, view):
    ...         raise NotImplementedError("one latent only")
    >>> belief = gf.DenseGaussian.isotropic(1)
    >>> result = gf.fold(belief, "bernoulli", np.ones((5, 1)), np.array([1, 1, 0, 1, 1.0]), rule=TwoPoints())
    >>> belief.mean.round(3), belief.variance().round(3)
    (array([0.732]), array([0.495]))
    """

    @property
    def record(self) -> Record | None:
        """How the engine knows this rule; None if it runs in Python only."""
        known = seam.built_in_rules()
        return seam.BuiltInRule(known.index(type(self)), self.alpha) if type(self) in known else None

    @abstractmethod
    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Gradient and curvature of the surrogate log likelihood, looking from ``N(m, v)``."""
