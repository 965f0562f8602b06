"""The settings that several image changes share. It is read without importing them, so it imports nothing slow."""

from dualread.schema.base import Section, Share


class StrengthSettings(Section):
    """How strongly an image is changed."""

    strength: Share
    """From 0, the picture as it is, to 1, which the first lines of the plugin explain."""
