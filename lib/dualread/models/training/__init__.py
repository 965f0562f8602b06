"""Actor training: one file an algorithm."""
