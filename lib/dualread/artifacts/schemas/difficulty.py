"""One row per estimate about the true difficulty of phantom images: of a method, or of a difference from a null.

From `estimate` on, the columns are those of the contrasts. Holm's correction is over all methods and nulls of a
backbone and reading.
"""

import polars as pl

from dualread.artifacts.schemas import Schema, column, nullable
from dualread.artifacts.schemas.contrasts import CONTRASTS

DIFFICULTY = Schema(
    name="difficulty",
    columns={
        "study": column(pl.String, "name of the study"),
        "backbone": column(pl.String, "config name of the backbone"),
        "actor": column(pl.String, "config name of the actor whose answers are judged"),
        "dataset": column(pl.String, "config name of the data set"),
        "reading": column(pl.String, "own: of the answer itself; exchanged: of an equal answer about another image"),
        "metric": column(pl.String, "auroc, accuracy_clear or accuracy_hazy"),
        "method": nullable(pl.String, "config name of the confidence method; null: the true difficulty itself"),
        "baseline": nullable(pl.String, "the null that is subtracted; null: the value is no difference"),
        **dict(list(CONTRASTS.columns.items())[list(CONTRASTS.columns).index("estimate") :]),
    },
)
