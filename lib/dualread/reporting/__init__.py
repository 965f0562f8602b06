"""Reporting: tables, figures, the comparison with the paper, and the HTML report of a study."""
