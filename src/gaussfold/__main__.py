"""``python -m gaussfold``: a Bayesian classifier on bundled data, in one pass, in front of your eyes."""

from __future__ import annotations

from gaussfold.demo import main

if __name__ == "__main__":
    main()
