"""Posteriors from all the data at once: the references that a single pass is measured against.

`exact_linear` (Gaussian noise), `laplace` (Gaussian at the mode), `variational` (the Gaussian nearest in
KL), `GridPosterior` (two parameters, no approximation).
"""

from gaussfold.batch.grid import GridPosterior
from gaussfold.batch.laplace import laplace
from gaussfold.batch.linear import exact_linear
from gaussfold.batch.variational import variational

__all__ = ["GridPosterior", "exact_linear", "laplace", "variational"]
