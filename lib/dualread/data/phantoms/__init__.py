"""Phantoms: procedurally drawn medical-like images, and questions that their pixels answer."""
