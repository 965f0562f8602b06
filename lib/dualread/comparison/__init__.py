"""A study's tables beside the paper's, and the paper beside itself."""
