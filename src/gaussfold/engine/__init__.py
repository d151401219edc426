"""Compiled inner loops: functions over numbers and arrays, no classes, no options.

- ``compiled``: the one decorator, the cache and its stamp; ``seam``, ``dispatch``: how a record chooses its functions
- ``families``, ``rules``: what is asked of a likelihood and of a rule; ``programs``: what a belief may ask of a program
- ``scalar``: one observation; ``arrays``: the same over rows; ``simd``: lanes, and the only pointers
- ``dense``, ``sparse``, ``lowrank``, ``kalman``: a folder per kind of loop; ``text``: bytes to rows

Why so: a loop is compiled per *type* of record, so that a family compiles only itself (docs/architecture.md, "Families
by type, rules by value"). What must not be broken: an unknown record or number is an error, never another's formula;
every loop names its equations and has a slow twin in ``tests/reference/``; nothing here imports what lies above but the
records of ``types``.
"""
