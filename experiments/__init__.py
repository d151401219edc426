"""One module per figure, or per family of figures, of the papers: ``python -m experiments --list``."""
