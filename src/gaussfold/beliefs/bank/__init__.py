"""Beliefs of one kind side by side, each with a pace of its own, weighed by how well they predict.

``belief``: the class. ``weights``: how much each member is believed (fixed share). ``storage``: as arrays and back.
Twin of the weights: ``tests/reference/bank.py``.
"""
