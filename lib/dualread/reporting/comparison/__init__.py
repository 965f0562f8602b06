"""The comparison of a study's tables with the paper's, and of the paper's numbers with each other.

The workflow imports this module at every start, so it imports nothing heavy.
"""

from collections.abc import Iterable

BACKBONES = frozenset({"qwen3-vl-2b", "medgemma-1.5-4b"})
# Our tables that the paper has too, each with its name in the paper.
TABLES = {
    "data": "dataset_audit",
    **{name: name for name in ("main", "cascade", "ood_acc", "calib", "reliability", "ccg_ood", "ccg", "ccg_denom")},
    **{name: name for name in ("sc_tradeoff", "channel", "paired")},
}


def compared(backbones: Iterable[str], tables: Iterable[str]) -> list[str]:
    """Return the `tables` of a study that the paper has too; none if the paper has none of the study's `backbones`."""
    return [name for name in tables if name in TABLES] if BACKBONES & set(backbones) else []
