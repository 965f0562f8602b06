"""DualRead: how far a medical vision-language model's answer can be trusted, and whether trust comes from the image."""

__version__ = "0.2.0"
