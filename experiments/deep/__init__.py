"""Posteriors of networks: chapter 5 and appendix B of the factor analysis thesis, and what it left open."""
