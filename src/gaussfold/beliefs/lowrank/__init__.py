"""Low rank plus diagonal in the precision: a million parameters on a laptop.

- ``belief``: the class; ``options``: what can be asked of it
- ``state``: the numbers it holds, rows that wait for their projection, and the projection
- ``passes``: rows of data, by segments or one by one; ``printed``: with the paper's own gain
- ``moves``: everything else that happens to it (given sites, forgetting, drift, combination)
- ``snapshot``: how a failing call is undone; ``storage``: the state as named arrays

Reference twin: ``tests/reference/lowrank.py``.
"""
