"""The tables and figures of the sparse online paper."""
