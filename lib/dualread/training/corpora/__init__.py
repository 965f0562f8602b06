"""Pretraining corpora: images and questions for backbones that are built from scratch; one file per corpus."""
