"""Additions as a stranger would make them: each one file, nothing else in the package knows of them.

``test_from_outside.py`` registers them, a line each, and runs them through the grid. CONTRIBUTING's table counts files
by these.
"""
