"""Low rank plus diagonal: projections of ``α(WW' + Ψ) + XBX'`` back onto that form, and streaming factor analysis."""

from gaussfold.factors.projections import PROJECTIONS, Projection, resolve_projection

__all__ = ["PROJECTIONS", "Projection", "resolve_projection"]
