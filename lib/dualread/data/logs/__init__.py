"""Logs: one reader per file, which reads the answers that another evaluation harness has logged into `Sample`s."""
