"""Rows of a contrasts table as a forest plot needs them: methods `a` and `b`, and nulls `q` and `qa`."""

from dualread.schema.columns import CONTRASTS
from tests.reporting.tables import contrasts

LABELS = {"a": "Method A", "b": "Method B", "q": "Question", "qa": "Question and answer"}


def own(method, estimate, metric="auroc", **columns):
    """A method's own value, with an interval of .1 on either side."""
    known = {"n_seeds": 1, "n": 60, "n_clusters": 40, "n_undefined": 0}
    return dict.fromkeys(CONTRASTS.columns) | contrasts.row(method, metric, estimate, **known | columns)


def minus(method, null, p, estimate=0.1, **columns):
    """A difference between a method and a null."""
    tested = {"contrast": "nulls", "baseline": null, "p": p, "p_at_most": None if p is None else False}
    return own(method, estimate, **{**tested, **columns})


# Sorted p-values .01, .015, .02, .5; of four, Holm's are .04, .045, .045, .5.
VALUES = [own("a", 0.8), own("b", 0.75), own("q", 0.6), own("qa", 0.65)]
TESTS = [minus("a", "q", 0.01), minus("a", "qa", 0.015), minus("b", "q", 0.02), minus("b", "qa", 0.5)]
