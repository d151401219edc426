"""What the site makes from the package itself, so that it cannot go stale."""
