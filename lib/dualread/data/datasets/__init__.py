"""Data sets: one loader per file, which reads the official files of one data set into `Row`s."""
