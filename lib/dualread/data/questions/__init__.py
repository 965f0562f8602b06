"""Manifests: one row a question, with its image, its role and an account of everything that was kept or dropped."""
