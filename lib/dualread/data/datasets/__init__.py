"""Data sets: one plugin a file, each reading an official on-disk format into `Row`s."""
