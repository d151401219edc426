"""What compiling is besides machine code: where it is kept (``kept``), and the wait while it is made (``waiting``).

``engine.compiled`` is the door. What must not be broken: a place that cannot be written, a damaged file or a second
process at the same work never stops a fit; what is loaded is what was saved. Tests: ``tests/engine/test_compiled.py``,
``tests/test_import.py``, ``tests/test_installed.py``.
"""
