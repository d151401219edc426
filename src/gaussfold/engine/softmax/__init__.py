"""Classes: sites of the softmax on K latents, and the loops that absorb them.

``independent``: latents without covariances (a belief per class); ``joint``: with them (one belief over all classes);
``largest`` and ``scores``: what a class was thought to be worth, without and with them; ``dense``, ``sparse``: rows
meet beliefs; ``stacking``: one prediction from those of several priors. While learning, averages are over nodes that
Python makes (``expectations.quasi_random``), the same for every row, so that each row is a smooth convex problem.
Twins: ``tests/reference/softmax.py``, ``tests/reference/largest.py``, ``tests/reference/class_stacking.py``.
"""
