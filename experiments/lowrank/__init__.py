"""Figures and tables of the L-RVGA paper and of chapter 4 of the thesis."""
