"""Views of completions are read part by part, with the values of one table."""

import polars as pl
import pytest

from dualread.artifacts.tables import write_rows
from dualread.errors import ArtifactError
from dualread.schema.columns import GENERATIONS
from dualread.stages._views import read_views
from tests.stages.shards import generation


class Answers:
    table = pl.DataFrame({"sample_id": ["a", "b", "c"], "condition": ["original"] * 3})


def read(folder, *completions):
    """Read a view with these (sample_id, sample_index, text, log-probability), written three per part."""
    of_view = {"image_id": "image", "condition": "original/samples"}
    rows = [
        generation(sample_id, text, **of_view, sample_index=index) | {"token_log_probs": [log_prob]}
        for sample_id, index, text, log_prob in completions
    ]
    write_rows(folder, rows, GENERATIONS, rows_per_part=3)
    return read_views(["samples"], {"samples": folder}, Answers, where="here")[0]


def test_completions_are_grouped_by_answer_across_parts(tmp_path):
    # The second answer is in both parts, out of order within each; the third one is invalid and was not asked about.
    found = [("b", 0, "y", -4.0), ("a", 1, "x", -2.0), ("a", 0, "y", -1.0), ("b", 2, "z", -16.0), ("b", 1, "x", -8.0)]
    view = read(tmp_path, *found)
    assert view.texts == (("y", "x"), ("y", "x", "z"), ())
    assert view.texts[0][1] is view.texts[1][1]
    log_probs = [[of.tolist() for of in answer] for answer in view.completion_log_probs()]
    assert log_probs == [[[-1.0], [-2.0]], [[-4.0], [-8.0], [-16.0]], []]


def test_a_completion_that_is_missing_is_named(tmp_path):
    with pytest.raises(ArtifactError, match=r"here: view samples: a has the completion 2, expected 1\."):
        read(tmp_path, ("a", 0, "x", -1.0), ("a", 2, "x", -1.0))


def test_a_completion_of_an_unknown_answer_is_named(tmp_path):
    with pytest.raises(ArtifactError, match="has 1 rows without an answer, such as d"):
        read(tmp_path, ("a", 0, "x", -1.0), ("d", 0, "x", -1.0))
