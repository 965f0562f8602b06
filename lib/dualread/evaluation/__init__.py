"""Where labels meet confidences: join predictions with grades, estimate every metric of a cell, average domains."""
