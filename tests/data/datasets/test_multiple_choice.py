from pathlib import Path

import pytest

from dualread.data.datasets.base import Row, askable

REASON = "gold is none"


def _row(*options, gold=("a",)):
    return Row(
        official_id="0",
        question="which?",
        reference_answers=gold,
        answer_type="closed",
        content_family=None,
        options=options,
        modality=None,
        location=None,
        image=Path("/a.jpg"),
        image_name="a.jpg",
        source_row=0,
    )


def _dropped(*rows):
    kept, audit = askable(rows, REASON)
    assert [step.step for step in audit] == ["four options", "distinct options", "gold option"]
    assert len(kept) == audit[-1].kept
    return [(step.kept, step.dropped) for step in audit]


@pytest.mark.parametrize(
    "options", [(), ("a", "b", "c"), ("w", "x", "y", "z", "v"), ("w", "x", "", "z"), ("w", "x", " - ", "z")]
)
def test_options_must_be_four_texts_with_a_canonical_form(options):
    assert _dropped(_row(*options)) == [(0, 1), (0, 0), (0, 0)]


@pytest.mark.parametrize("twice", ["Liver", "the liver.", "LIVER "])
def test_options_must_have_different_canonical_forms(twice):
    assert _dropped(_row("liver", "lung", twice, "heart")) == [(1, 0), (0, 1), (0, 0)]


def test_each_row_is_counted_under_the_first_rule_that_drops_it():
    rows = [
        _row("w", "x", "y", "z"),
        _row("w", "w", "y", "", gold=()),
        _row("w", "w", "y", "z", gold=()),
        _row("w", "x", "y", "z", gold=()),
        _row("w", "x", "y", "z", gold=()),
    ]
    assert _dropped(*rows) == [(4, 1), (3, 1), (1, 2)]
