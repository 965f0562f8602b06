"""A study's tables beside the paper's, and the paper beside itself. Read here at every start of the workflow."""

from collections.abc import Iterable

BACKBONES = frozenset({"qwen3-vl-2b", "medgemma-1.5-4b"})
# Our tables that the paper has too, and its name for each.
TABLES = {
    "data": "dataset_audit",
    **{name: name for name in ("main", "cascade", "ood_acc", "calib", "reliability", "ccg_ood", "ccg", "ccg_denom")},
    **{name: name for name in ("sc_tradeoff", "channel", "paired")},
}


def compared(backbones: Iterable[str], tables: Iterable[str]) -> list[str]:
    """Return which of a study's `tables` the paper has too; none where it has none of the study's `backbones`."""
    return [name for name in tables if name in TABLES] if BACKBONES & set(backbones) else []
