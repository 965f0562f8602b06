"""Answer sets of questions with choices: those that are likely enough for the right one to be among them.

Not in the paper. Split conformal sets (`evaluation.answer_sets`) from the probabilities of each question's choices, for
each share of questions that a set may miss (`metrics.miss_percent`), of methods that read these probabilities. With
`subgroups` of the study, all questions of a data set stand above the groups of each column.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dualread.evaluation.answer_sets import GROUP_PREFIX, set_metric
from dualread.evaluation.metric import Metric
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.cells import PrintedTable
from dualread.reporting.tables.entries import Gap
from dualread.reporting.tables.values import Key, Value
from dualread.schema.tables import Layout

OF_CHOICES = True  # a study says how often sets may miss

_COUNTS = {"with_choices": "𝑛", "without": "None", "unknown": "Other"}
_N = "set_questions_with_choices"
_HEADS = {"threshold": "𝑝≥", "coverage": "Right in", "mean_size": "Size↓", "empty": "Empty", "single": "Single↑"}


def _columns(at: sheet.RowContext) -> list[sheet.SheetColumn]:
    counts = [
        sheet.SheetColumn(head, [Metric(name=f"set_questions_{name}", digits=0)], title="Questions")
        for name, head in _COUNTS.items()
    ]
    return counts + [
        sheet.SheetColumn(head, [Metric(name=set_metric(kind, percent))], title=f"May miss {percent}%")
        for percent in sheet.target_percents(at.values, set_metric("threshold", 0).removesuffix("00"))
        for kind, head in _HEADS.items()
    ]


def _caption(at: sheet.RowContext) -> list[str]:
    return [
        f"Answer sets of questions with choices, study {at.layout.study}.",
        "A set has the choices with at least the probability 𝑝 among the question's options (yes and no of a closed "
        f"question), chosen on the validation questions of {at.layout.id_dataset.label.removesuffix('-test')}: over "
        "their draw, the set of a random answer about a new {unit} of the same source misses the right choice at most "
        "as often as the title says, .027 to .103 for 10% in simulations. Nothing is promised out of distribution.",
        "𝑛: questions with choices; None: without; Other: the right answer is none of the choices, in no other column. "
        "Right in: share of the sets that have the right choice. Size: choices per set. Empty, Single: shares of sets "
        "with none and with one.",
        *([_ABOUT_GROUPS] if any(key.subset.startswith(GROUP_PREFIX) for key in at.values) else []),
        f"{sheet.SPREAD}. Intervals of the coverage are in metrics.parquet.",
    ]


_ABOUT_GROUPS = (
    "The threshold is one for all groups, so that a group can be covered more rarely than the title says, and others "
    "more often."
)


def _groups(at: sheet.RowContext) -> Iterator[sheet.RowContext]:
    """Yield all questions of a data set, and then its groups."""
    here = at.key._replace(subset="", metric=_N)
    names = {"all", *(key.subset for key in at.values if key._replace(subset="") == here)}
    return (replace(at, subset=name) for name in sorted(names, key=lambda name: (name != "all", name)))


def _group(at: sheet.RowContext) -> str:
    by, _, group = at.subset.removeprefix(GROUP_PREFIX).partition("=")
    return f"{by} {group or '(no value)'}" if at.subset.startswith(GROUP_PREFIX) else at.subset


def build(values: Mapping[Key, Value], layout: Layout) -> PrintedTable:
    """Return the table; it names groups where there are some."""
    has_groups = any(key.subset.startswith(GROUP_PREFIX) for key in values)
    return sheet.Sheet(
        name="answer_sets",
        rows=[
            sheet.BACKBONES,
            sheet.RowLevel(sheet.datasets, [sheet.Label("Dataset", lambda at: at.dataset.label)], gap=Gap.SMALL_SPACE),
            sheet.METHODS,
            *([sheet.RowLevel(_groups, [sheet.Label("Group", _group)])] if has_groups else []),
        ],
        columns=_columns,
        caption=_caption,
        small=True,
    )(values, layout)
