"""A Gaussian (or a mixture of such) without covariances: a mean and a variance per feature, for billions of them.

- ``belief``, ``mixture``: the two classes, over one ``base``
- ``state``: the numbers they hold, and what time does to them; ``storage``: the same as named arrays
- ``lazy_cells``: memory that is taken when a feature is first met
- ``passes``: looking at rows and learning them, by the loops of ``engine.sparse``
- ``coupling``: how the features of a row share what it says

Reference twin: ``tests/reference/diagonal.py``.
"""
