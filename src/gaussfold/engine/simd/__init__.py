"""Lanes of four and eight numbers, and their way to and from memory: the only folder where a pointer may appear."""
