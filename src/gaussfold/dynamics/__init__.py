"""How a belief ages between observations: forgetting towards the prior, or a random walk.

What must not be broken: forgetting never winds up (the covariance stays below the prior's), and a tick happens only
before a row that is learned. Twins: ``tests/reference/dense.py`` (``relax``, ``kalman_random_walk``).
"""

from gaussfold.dynamics.drift import Dynamics, Forgetting, RandomWalk, moving

__all__ = ["Dynamics", "Forgetting", "RandomWalk", "moving"]
