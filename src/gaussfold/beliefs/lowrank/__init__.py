"""Low rank plus diagonal: the belief, its passes over rows, and what is projected when."""
