"""How a belief ages between observations: forgetting towards the prior, or a random walk."""

from gaussfold.dynamics.drift import Dynamics, Forgetting, RandomWalk, moving

__all__ = ["Dynamics", "Forgetting", "RandomWalk", "moving"]
