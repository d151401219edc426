"""A full covariance: the belief, and its passes over rows."""
