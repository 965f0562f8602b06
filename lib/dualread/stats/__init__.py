"""Uncertainty of a metric: image-cluster bootstrap."""
