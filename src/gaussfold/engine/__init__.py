"""Compiled inner loops: functions over numbers and arrays, no classes, no option parsing.

Everything here is compiled by Numba on first use and cached on disk. Each loop names the equations
it runs; its slow twin is in ``tests/reference/``.
"""
