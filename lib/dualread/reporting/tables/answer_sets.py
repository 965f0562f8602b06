"""Answer sets of questions with choices: those that are likely enough for the right one to be among them.

Not in the paper. Split conformal sets (`evaluation.answer_sets`) from the probabilities of each question's choices, for
each share of questions that a set may miss (`metrics.miss_percent`), of methods that read these probabilities.
"""

from dualread.evaluation.answer_sets import set_metric
from dualread.evaluation.metric import Metric
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.entries import Gap

OF_CHOICES = True  # a study says how often sets may miss

_COUNTS = {"with_choices": "𝑛", "without": "None", "unknown": "Other"}
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
        f"{sheet.SPREAD}. Intervals of the coverage are in metrics.parquet.",
    ]


build = sheet.Sheet(
    name="answer_sets",
    rows=[
        sheet.BACKBONES,
        sheet.RowLevel(sheet.datasets, [sheet.Label("Dataset", lambda at: at.dataset.label)], gap=Gap.SMALL_SPACE),
        sheet.METHODS,
    ],
    columns=_columns,
    caption=_caption,
    small=True,
)
