"""Loops of low-rank precisions: products over tiles of a tall factor, and the fused single row.

Reference twin: ``tests/reference/lowrank.py``.
"""
