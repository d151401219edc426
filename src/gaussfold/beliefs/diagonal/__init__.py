"""One mean and one variance per feature: the beliefs, their cells, and how rows are shared."""
