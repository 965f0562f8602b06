"""Pools of images and questions that backbones built from scratch are pretrained on; one file a pool."""
