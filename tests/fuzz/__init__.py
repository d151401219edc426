"""Inputs that nobody would write by hand, made from a number, and given to the code beside a slow twin.

A *target* is a file in ``targets/`` with one function ``case(rng, folder)``: it makes an input from ``rng``, hands it
to the code, lets the errors pass that a user may meet (ValueError, OSError), and asserts the rest. Case n of a target
is the same on every machine, so a failure is told by its number; numbers that ever failed stand in ``seeds.toml`` and
run in the gate, with a few new ones (``test_fuzz.py``). ``python -m tests.fuzz --minutes 60`` goes on where the gate
stops, in processes of their own, so that a signal, a hang or a leak is a failure like any other.
"""
