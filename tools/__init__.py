"""What looks after the house: linters (``python -m tools.lint``) and its numbers (``python -m tools.house``)."""
