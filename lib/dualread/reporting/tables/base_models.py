"""What the models answer before any training, and how far their own confidence in it can be trusted.

Not in the paper. It needs no trained actor, so it is the first table of results that a run makes.
"""

from dualread.reporting.tables._stacked import stacked

build = stacked(
    "base_models",
    lambda at: at.layout.datasets,
    lambda at: [f"Answers of the models before any training, and confidence in them, study {at.layout.study}."],
)
