"""Data: laws to draw from (readers and hashing come with the sparse models)."""

from gaussfold.data.synthetic import Streams, TwoGaussians, streams, two_gaussians

__all__ = ["Streams", "TwoGaussians", "streams", "two_gaussians"]
