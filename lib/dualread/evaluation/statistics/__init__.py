"""Uncertainty of a metric: the bootstrap over images, p-values, and Holm's adjustment."""
