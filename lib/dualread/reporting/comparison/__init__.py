"""The comparison of a study's tables with the paper's, and of the paper's numbers with each other."""
