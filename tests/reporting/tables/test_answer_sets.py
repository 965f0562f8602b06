"""The table of answer sets: a row for all questions, and one per group where a study has groups."""

import re

import pytest

from dualread.plugins import load
from dualread.stages import build_table
from tests.reporting.tables import layouts


def sets(subset, coverage):
    named = {"set_questions_with_choices": 40.0, "set_threshold_at_miss_10": 0.3, "set_coverage_at_miss_10": coverage}
    return [layouts.estimate("sets", name, value, subset=subset) for name, value in named.items()]


@pytest.mark.parametrize(
    ("groups", "rows"),
    [
        ({}, ["Sets .900"]),
        (
            {"group:sex=m": 0.95, "group:sex=f": 0.85, "group:sex": 0.8},
            ["Sets all .900", "sex (no value) .800", "sex f .850", "sex m .950"],
        ),
    ],
)
def test_groups_stand_below_all_questions(groups, rows):
    values = [*sets("all", 0.9), *(row for name, coverage in groups.items() for row in sets(name, coverage))]
    shown = [layouts.method("sets", label="Sets"), layouts.method("none", label="None")]
    layout = layouts.layout(shown, backbones=layouts.TINY, seeds=[17])
    table = build_table.build(load("tables", "answer_sets"), layouts.metrics(*values), layout)
    found = []
    for line in table.html.splitlines():
        texts = [re.sub("<[^>]*>", "", cell) for cell in re.findall("<t[hd].*?</t[hd]>", line)]
        if len(texts) > 8:  # labels, three counts, a threshold, the coverage, and three more
            found.append(" ".join(text for text in (*texts[:-8], texts[-4]) if text and text != "SLAKE-test"))
    assert found[-len(rows) - 1 :] == [*rows, "None all —" if groups else "None —"]  # one has no values
    assert ("one for all groups" in table.tex) == bool(groups)
