"""LM-Polygraph's estimators as confidence methods of DualRead; one module per reader (docs/estimators.md)."""
