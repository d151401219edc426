"""The site's own drawings: ``python -m docs.figures`` draws them all into ``docs/images``."""
