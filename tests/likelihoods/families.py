"""The families at odd parameters, with labels worth trying."""

from gaussfold import likelihoods as lk

FAMILIES = [
    (lk.Gaussian(std=0.7), [-3.0, 1.3]),
    (lk.Bernoulli(), [0.0, 0.3, 1.0]),
    (lk.Bernoulli("probit"), [0.0, 0.3, 1.0]),
    (lk.Poisson(), [0.0, 3.0, 2500.0]),
    (lk.StudentT(df=3.5, scale=0.8), [-40.0, 1.3]),
    (lk.StudentT(df=30.0, scale=0.05), [-40.0, 1.3]),
    (lk.NegativeBinomial(dispersion=2.5), [0.0, 4.0, 250.0]),
    (lk.NegativeBinomial(dispersion=0.3), [0.0, 4.0, 250.0]),
]
APPROXIMATE = lk.Bernoulli(expectation="probit")
COUNTS = [lk.Poisson(), lk.NegativeBinomial(dispersion=2.5)]


def name(value: object) -> str | None:
    """A readable test id for a family; pytest finds its own for the rest."""
    return repr(value) if isinstance(value, lk.ScalarLikelihood) else None
