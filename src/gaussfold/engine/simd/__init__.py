"""Lanes of four and eight numbers, and their way to and from memory: the only folder where a pointer may appear.

``types``: what a lane is; ``lanes``: arithmetic on them, as LLVM has it; ``pointers``: what points into an array, and
how the sanitising mode looks after it; ``lane_memory``: loads, stores, gathers.
What must not be broken: a pointer is made of an argument of the function alone, which its caller holds (the compiler
frees an array of the function's own after its last visible use).
Twins: the same expressions on scalars, ``tests/engine/test_lanes.py``.
"""
