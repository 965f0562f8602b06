"""The image as the condition shows it; for a condition, the question's own image."""

from dualread.models.images.base import unchanged

change = unchanged
