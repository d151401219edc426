"""A dense Gaussian process with sites on R^D, written out: the textbook version of the global update (60)."""

from __future__ import annotations

import numpy as np

from gaussfold.types import Sites


def matern32(x, variance=1.0, lengthscale=1.0):
    r = np.sqrt(3.0) * np.abs(x[:, None] - x[None, :]) / lengthscale
    return variance * (1.0 + r) * np.exp(-r)


def matern52(x, variance=1.0, lengthscale=1.0):
    r = np.sqrt(5.0) * np.abs(x[:, None] - x[None, :]) / lengthscale
    return variance * (1.0 + r + r * r / 3.0) * np.exp(-r)


def stacked(kernels):
    """Independent latents: the joint prior covariance of f_n, ordered (n, d)."""
    latents, rows = len(kernels), kernels[0].shape[0]
    prior = np.zeros((rows, latents, rows, latents))
    for d, kernel in enumerate(kernels):
        prior[:, d, :, d] = kernel
    return prior.reshape(rows * latents, -1)


def posterior(prior, sites: Sites):
    """Joint mean and covariance, and log ∫ p(f) t(f) df of the unnormalised sites; precisions of any sign."""
    rows, latents = sites.shift.shape
    precision = np.zeros((rows, latents, rows, latents))
    precision[np.arange(rows), :, np.arange(rows)] = sites.precision
    precision = precision.reshape(prior.shape)
    grown = np.eye(prior.shape[0]) + prior @ precision
    cov = np.linalg.solve(grown, prior)
    cov = 0.5 * (cov + cov.T)
    mean = cov @ sites.shift.ravel()
    log_z = 0.5 * sites.shift.ravel() @ mean - 0.5 * np.linalg.slogdet(grown)[1]
    return mean, cov, log_z


def marginals(mean, cov, latents):
    rows = mean.size // latents
    blocks = cov.reshape(rows, latents, rows, latents)[np.arange(rows), :, np.arange(rows)]
    return mean.reshape(rows, latents), blocks


def flat_sites(rows, latents, precision=0.01):
    """The authors' start: mean 0, covariance 100 I."""
    return Sites(
        np.broadcast_to(precision * np.eye(latents), (rows, latents, latents)).copy(), np.zeros((rows, latents))
    )
