"""The order in which the pages of the preview and the report show the tables."""

from tests.study.embedded import EMBEDDED

# Their labels as they come in the paper; our table data is its dataset_audit.
PAPER = [
    *("main", "cascade", "sc_tradeoff", "hparams", "data", "channel", "paired", "ood_acc", "calib", "reliability"),
    *("ccg_ood", "ccg", "ccg_denom"),
]


def test_the_tables_of_the_paper_come_first_and_in_its_order():
    assert list(EMBEDDED["tables"])[: len(PAPER)] == PAPER
