r"""Compute and reliability: each method's cost, in the paper's notation and as measured, beside its reliability.

Reproduces the layout of the paper's Table sc_tradeoff, with a block of columns, not of rows, per data set.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from dualread.evaluation.answer_metrics import AURC, AUROC, BRIER
from dualread.evaluation.costs import GENERATED_TOKENS, PROMPT_PASSES, READ_TOKENS, REPLAY_PASSES
from dualread.evaluation.explained import CAPTIONS
from dualread.reporting.tables import _sheet as sheet

# The symbols of a cost, and what each of them counts.
_SYMBOLS = {"𝑡": "cost_completions", "ρ": "cost_prompt_only_passes", "τ": REPLAY_PASSES.name}


_STATES = "The pass that answers keeps the hidden states that methods read of it, so that no answer is replayed."
_OF_CLAIMS = "Here answers are claims, which share what is measured of their report; the notation is that of a report."
_FITTING = "Views that fitting alone reads cost, per answer on which a method is fitted"


def _caption(at: sheet.RowContext) -> list[str]:
    fitting = [f"{method.label} {sheet.notation(method.fitting)}" for method in at.layout.methods if method.fitting]
    return [
        f"Cost and reliability, study {at.layout.study}.",
        sheet.NOTATION,
        f"Measured per answer on {at.dataset.label}: passes over a prompt with its image (Prompts), "
        "passes over prompt and answer together (Replays), tokens that all passes read (Read) and generated tokens "
        "(Gen.). Samples that answer one question share one pass over its prompt.",
        *([_OF_CLAIMS] if _completions(at) < 1 else []),
        *([_STATES] if any(method.states for method in at.layout.methods) else []),
        CAPTIONS[AURC.name],
        f"{sheet.SPREAD}. Bold: best printed value per column and backbone; nulls are never bold.",
        *_discrepancies(at),
        *([f"{_FITTING}: {', '.join(fitting)}."] if fitting else []),
    ]


def _discrepancies(at: sheet.RowContext) -> list[str]:
    """Return sentences on the methods whose measured cost differs from the paper's; none where all agree."""
    discrepancies: dict[str, None] = {}  # in order, each once
    for row in (row for block in sheet.backbones(at) for row in sheet.methods(block)):
        method, measured = row.method, _measured_cost(row)
        if not method.cost or not measured:
            continue
        of_paper = sheet.notation(method.cost)  # 𝑡+2ρ has one 𝑡, two ρ and no τ
        count_of = {symbol: float(count or 1) for count, symbol in re.findall(r"(\d*)([𝑡ρτ])", of_paper)}
        if measured != {symbol: count_of.get(symbol, 0.0) for symbol in _SYMBOLS}:
            ours = "+".join(f"{'' if n == 1 else f'{n:g}'}{symbol}" for symbol, n in measured.items() if n)
            discrepancies[f"{method.label} {ours} (paper: {of_paper})"] = None
    if not discrepancies:
        return []
    return [
        f"Measured costs that differ from the paper's: {', '.join(discrepancies)}.",
        "A measured cost includes the greedy answer and all that scoring needs; it excludes what only fitting needs.",
    ]


def _measured_cost(at: sheet.RowContext) -> dict[str, float] | None:
    """Return the number of each symbol; of a claim, those of its report, which has one completion."""
    counts, share = {}, min(_completions(at), 1.0)
    for symbol, metric in _SYMBOLS.items():
        value = at.values.get(at.key._replace(metric=metric))
        if value is None or value.mean is None:
            return None
        counts[symbol] = value.mean / share
    return counts


def _completions(at: sheet.RowContext) -> float:
    """Return how many completions an answer has; below 1 where answers are claims, which share one."""
    value = at.values.get(at.key._replace(metric="cost_completions"))
    return 1.0 if value is None or not value.mean else value.mean


def _columns(at: sheet.RowContext) -> Sequence[sheet.SheetColumn]:
    passes = [PROMPT_PASSES, REPLAY_PASSES]
    if _completions(at) < 1:
        passes = [replace(metric, digits=3) for metric in passes]
    shown = sorted(at.layout.datasets, key=lambda dataset: not dataset.id)
    measured = sheet.columns_here([*passes, READ_TOKENS, GENERATED_TOKENS], "Measured")
    return [*measured, *sheet.columns_of(shown, [AUROC, BRIER, AURC])]


build = sheet.Sheet(
    name="costs",
    rows=[sheet.BACKBONES, sheet.RowLevel(sheet.methods, [sheet.METHOD, sheet.COST._replace(alignment="c")])],
    columns=_columns,
    caption=_caption,
)
