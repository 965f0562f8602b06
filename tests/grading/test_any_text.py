"""Any text can be parsed as a completion and graded as an answer, without an error."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.grading.answers import stated_percent
from dualread.grading.canonical import canonical, is_correct, question_key
from dualread.grading.options import option_of
from dualread.grading.parse import Status, answer_span
from tests.drawn import few, texts
from tests.grading.contracts import parse

_PIECES = ["<answer>", "</answer>", "<confidence>", "</confidence>", "<vision_confidence>", "</vision_confidence>"]
_PIECES += [
    *("<reasoning_confidence>", "</reasoning_confidence>", "100", "007", "-5", "101", "0.8", "yes", " "),
    *("\n", "٣"),
]
completions = st.one_of(texts, st.lists(st.one_of(st.sampled_from(_PIECES), texts), max_size=12).map("".join))


@few
@given(completions, st.sampled_from(["single", "dual"]))
def test_any_completion_is_parsed(text, contract):
    parsed = parse(text, contract)
    assert parsed.status in get_args(Status)
    assert (parsed.answer is None) == (parsed.status in ("invalid_answer", "invalid_both"))
    assert (parsed.confidence is None) == (parsed.status in ("invalid_confidence", "invalid_both"))
    assert parsed.confidence is None or 0.0 <= parsed.confidence <= 1.0
    if parsed.answer is not None:
        start, end, close = answer_span(text)
        assert text[start:end] == parsed.answer == parsed.answer.strip() != ""
        assert text[end:close].strip() == "</answer>"
    stated = stated_percent(text)
    assert stated is None or stated in range(101)


@few
@given(texts, texts)
def test_any_text_is_graded_and_grades_are_an_equivalence(one, other):
    form = canonical(one)
    assert canonical(f"  {one}\n") == form == form.strip()
    assert is_correct(one, [one]) == (form != "")
    assert is_correct(one, [other]) == is_correct(other, [one])
    assert not is_correct(None, [one])
    assert not is_correct(one, [])
    assert question_key(one) == question_key(f" {one.upper().lower() if one.isascii() else one}\t")


@pytest.mark.parametrize("part", ["(and ", ",", "and,", "'", "the ", "-.", "\u200b", "5,5", "((", "s's "])
def test_a_long_answer_is_graded_in_time_that_grows_with_its_length(part):
    for text in (part * 100_000, f"{part * 100_000}x"):
        assert canonical(canonical(text)) == canonical(text) or part == "the "
        question_key(text)
        option_of(text, ["left", "right"])
