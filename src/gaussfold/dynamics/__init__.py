"""How a belief ages between observations: forgetting towards the prior, or a random walk."""

from gaussfold.dynamics.drift import Forgetting, RandomWalk

__all__ = ["Forgetting", "RandomWalk"]
