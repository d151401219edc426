"""One file per target; its name is the target's name."""
