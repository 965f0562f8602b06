"""A second computation of what tables and figures print, from the files of a finished study, to compare cell by cell.

Written from the paper's definitions (and the README's "Deviations and choices") as plain loops over rows, with
scikit-learn and scipy where they have the definition. It imports nothing of the library, so that no mistake can be on
both sides. What is shown (methods, labels, seeds) comes from the tables' own MANIFEST.json; no number does.

    python -m tests.workflow.recount results/embedded
"""
