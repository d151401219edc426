"""Bytes to rows: scanning, numbers, hashing, and one parser per text format. Twin: ``tests/reference/parsers.py``."""
