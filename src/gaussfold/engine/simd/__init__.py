"""Lanes of four and eight numbers, and their way to and from memory: the only folder where a pointer may appear.

``types``: what a lane is; ``lanes``: arithmetic on them, as LLVM has it; ``lane_memory``: loads, stores, gathers.
What must not be broken: a pointer lives no longer than the function that holds its array (the compiler may free an
array after its last use). Twins: the same expressions on scalars, ``tests/engine/test_lanes.py``.
"""
