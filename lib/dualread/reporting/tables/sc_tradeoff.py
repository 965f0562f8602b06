r"""Compute against reliability: what sampling many answers gains, and what one replay gains.

Reproduces the layout of the paper's Table sc_tradeoff: one block of rows per backbone and data set, with costs in
the paper's notation. Table costs has the measured costs.
"""

from dualread.evaluation.answer_metrics import AURC, AUROC, BRIER
from dualread.reporting.tables._sheet import (
    COST,
    METHOD,
    METHODS,
    NOTATION,
    SPREAD,
    RowLevel,
    Sheet,
    backbones,
    columns_here,
    datasets,
)
from dualread.reporting.tables.entries import Gap

_METRICS = [AUROC, BRIER, AURC]


build = Sheet(
    name="sc_tradeoff",
    rows=[
        RowLevel(backbones, gap=Gap.RULE),
        RowLevel(
            datasets,
            heading=lambda at: f"{at.backbone.label}, {'ID' if at.dataset.id else 'OOD'}: {at.dataset.label}",
            gap=Gap.SPACE,
        ),
        METHODS._replace(labels=[METHOD, COST]),
    ],
    columns=lambda at: columns_here(_METRICS),
    caption=lambda at: [
        f"Compute and reliability, study {at.layout.study}.",
        NOTATION,
        f"{CAPTIONS[AURC.name]} ID and OOD: in and out of distribution.",
        f"{SPREAD}. Bold: best printed value per column and block.",
    ],
    wide=False,
)
