"""Donors: which other image shows another answer to the same question."""
