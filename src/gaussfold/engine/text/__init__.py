"""Bytes to rows, one parser per text format. Twin: ``tests/reference/parsers.py``.

- ``byte_scan``, ``numbers``, ``murmur``, ``feature_hash``, ``csv_fields``: tokens, and what they are.
- ``parse_vw``, ``parse_svm``, ``parse_csv``: one format each, a line or record at a time, into ``row_memory``.
- ``csr_rows``: what every parser does at the end of a row, and with a bad one (``expected``, ``report``).
- ``pairs``, ``merge_duplicates``: the same for rows that do not come from text.

The caller owns all memory and holds it while a parser runs; a parser works on pointers into it.
"""
