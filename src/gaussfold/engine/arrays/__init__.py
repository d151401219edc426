"""The scalar functions run over arrays, and the expectations that are worth lanes: for rules on many rows at once."""
