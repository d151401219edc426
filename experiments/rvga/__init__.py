"""Figures of the R-VGA paper: logistic regression, one pass, dense Gaussian beliefs."""
