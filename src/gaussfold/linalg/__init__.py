"""The only home of Cholesky factors, triangular solves and square roots."""
