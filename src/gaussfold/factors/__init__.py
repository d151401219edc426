"""Low rank plus diagonal: projections of ``α(WW' + Ψ) + XBX'`` back onto that form, and streaming factor analysis.

``recursive_em``, ``eigen``, ``marginal`` and ``calibrated`` are the projections (``projections`` names them),
``woodbury`` the algebra that they share; ``recursive``, ``online_em``, ``gradient`` the streams of factor analysis,
``model`` what they estimate.
What must not be broken: never an array of d × d. Twins: ``tests/reference/lowrank.py``, ``tests/factors``.
"""

from gaussfold.factors.projections import PROJECTIONS, Projection, resolve_projection

__all__ = ["PROJECTIONS", "Projection", "resolve_projection"]
