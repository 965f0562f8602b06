"""Phantom hospitals: one writer a file, each in the official on-disk format of one real data set, quirks included."""
