"""Dataframes into hashed sparse rows: ``gf.hashing.FeatureHasher``."""

from gaussfold.data.hashing import FeatureHasher

__all__ = ["FeatureHasher"]
