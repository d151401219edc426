"""Figures 2 to 7 of the Bayes-Newton paper (Wilkinson, Särkkä and Solin, 2023)."""
