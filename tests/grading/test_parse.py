from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.grading.answers import character_spans, graded_answer, stated_percent, tokens_within, why_no_answer
from dualread.grading.contracts.linguistic import PROBABILITIES
from dualread.grading.graders.base import yes_or_no
from dualread.grading.parse import Parsed, answer_span, block_span
from tests.grading.contracts import parse


def single(answer: str = "lung", confidence: str = "90") -> str:
    return f"<reasoning>r</reasoning>\n<answer>{answer}</answer>\n<confidence>{confidence}</confidence>"


def test_a_valid_completion():
    assert parse(single(" Left lung\n")) == Parsed(answer="Left lung", confidence=0.9, status="valid")


@pytest.mark.parametrize(("text", "value"), [("0", 0.0), ("100", 1.0), (" 42\n", 0.42), ("07", 0.07), ("007", 0.07)])
def test_valid_confidences_are_read(text, value):
    assert parse(single(confidence=text)).confidence == value


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "101", "999", "0042", "-1", "+5", "90%", "90.0", "0.9", "ninety", "9 0", "NN", "٣"),
        *("90 or 80", "<b>9</b>", "1e1"),
    ],
)
def test_invalid_confidences_are_none(text):
    assert parse(single(confidence=text)) == Parsed(answer="lung", confidence=None, status="invalid_confidence")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", "invalid_both"),
        ("lung", "invalid_both"),
        ("<answer></answer><confidence>5</confidence>", "invalid_answer"),
        ("<answer> \n</answer><confidence>5</confidence>", "invalid_answer"),
        ("<answer>a</answer><answer>a</answer><confidence>5</confidence>", "invalid_answer"),
        ("<answer>a</answer></answer><confidence>5</confidence>", "invalid_answer"),
        ("</answer>a<answer><confidence>5</confidence>", "invalid_answer"),
        ("<Answer>a</Answer><confidence>5</confidence>", "invalid_answer"),
        ("< answer>a</answer><confidence>5</confidence>", "invalid_answer"),
        ("<answer>a<confidence>5</confidence>", "invalid_answer"),
        ("<answer><reasoning>a</reasoning></answer><confidence>5</confidence>", "invalid_answer"),
        ("<answer>a</answer><confidence>5</confidence><confidence>5</confidence>", "invalid_confidence"),
        ("<answer>a</answer><confidence>5", "invalid_confidence"),
        ("<answer>a</answer><CONFIDENCE>5</CONFIDENCE>", "invalid_confidence"),
        ("<answer><confidence>5</confidence></answer>", "invalid_both"),
        ("<confidence><answer>5</answer></confidence>", "invalid_both"),
        ("<answer>a<confidence></answer>5</confidence>", "invalid_both"),
        ("<confidence>5</confidence><answer>a</answer>", "valid"),
        ("<answer>a</answer><confidence>5</confidence>", "valid"),
    ],
)
def test_statuses(text, status):
    assert parse(text).status == status


@pytest.mark.parametrize(
    ("vision", "reasoning", "value"),
    [
        ("10", "10", 1.0),
        ("8", "6", 2 / (1 / 8 + 1 / 6) / 10),  # 2 * 48 / 14 / 10 = 0.6857...
        ("0", "10", 0.0),
        ("0", "0", 0.0),
        ("11", "5", None),
        ("5", "", None),
        ("5.0", "5", None),
    ],
)
def test_dual_contract(vision, reasoning, value):
    inside = f"<vision_confidence>{vision}</vision_confidence> <reasoning_confidence>{reasoning}</reasoning_confidence>"
    parsed = parse(single(confidence=inside), "dual")
    assert parsed.confidence == (None if value is None else pytest.approx(value, abs=1e-15))
    assert parsed.parts == (None if value is None else (int(vision) / 10, int(reasoning) / 10))
    assert parse(single(confidence=inside)).status == "invalid_confidence"


@pytest.mark.parametrize("vision", range(11))
def test_a_dual_confidence_is_the_float_nearest_to_the_harmonic_mean(vision):
    for reasoning in range(1, 11):
        inside = f"<vision_confidence>{vision}</vision_confidence><reasoning_confidence>{reasoning}"
        found = parse(single(confidence=f"{inside}</reasoning_confidence>"), "dual").confidence
        exact = Fraction(2 * vision * reasoning, 10 * (vision + reasoning))
        assert (
            found == exact.numerator / exact.denominator
        )  # for 2 and 10 it is 1/3, the lower edge of a bin of the ECE


@pytest.mark.parametrize(
    "stated", ["9", "<reasoning_confidence>5</reasoning_confidence><vision_confidence>5</vision_confidence>"]
)
def test_dual_contract_needs_both_in_order(stated):
    assert parse(single(confidence=stated), "dual").status == "invalid_confidence"


def test_block_span_points_between_the_only_tags():
    assert block_span("a<vision>b c</vision>d", "vision") == (9, 12)  # "a<vision>" is 9 characters
    assert block_span("<vision></vision>", "vision") == (8, 8)
    assert block_span("</vision><vision>", "vision") is None
    assert block_span("<vision>a</vision><vision>", "vision") is None


def test_answer_span_points_into_the_text():
    text = "x<answer> Left lung\n</answer> y"
    # "x<answer>" is 9 characters, then a space: the answer starts at 10, has 9 characters; "\n" and the tag end at 29.
    assert answer_span(text) == (10, 19, 29)
    assert text[10:19] == "Left lung"
    assert text[:29].endswith("</answer>")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("007", 7),
        ("95%", 95),
        ("It is 95. ", 95),
        ("(95), I think", 95),
        ("**95**", 95),
        ("_95_", 95),
        ("95/100", 100),  # the last integer is 100, and the rule asks for nothing else
        ("I'd say 70 out of 100", 100),
        ("150 then 40", 40),
        ("40 then 150", 40),
        ("first 20, then 30", 30),
        ("20,\n30", 30),
        ("80-90", 90),
        ("80%-90%", 90),
        ("80\u201390", 90),
        ("between 80 - 90", 90),
        ("T2 and the 4th ventricle: 60", 60),
        ("60, for the 4th ventricle on T2", 60),
        ("0.8, that is 80", 80),
        ("60 or 0.8", 60),
        ("95.0 or 90", 90),
        ("1,000 or 5", 5),
    ],
)
def test_stated_integers(text, value):
    assert stated_percent(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "none",
        "101",
        "0100",  # more than three digits
        "0.8",
        ".8",
        "95.0",
        "0,8",
        "1,000",
        "-5",
        "\u22125",
        "+5",
        "COVID-19",
        "1e2",
        "x95",
        "95x",
        "90th",
        "10\u00b2",  # a superscript two
        "٩٥",
        "９５",
        "9٥",
        "ninety-five",
    ],
)
def test_replies_that_state_nothing(text):
    assert stated_percent(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<confidence>70</confidence> out of 100", 70),
        ("<confidence> 070\n</confidence> out of 100", 70),
        ("Use <confidence>NN</confidence>: <confidence>70</confidence> of 100", 70),  # the first is no valid block
        ("<confidence>0</confidence>", 0),
        ("<confidence>100</confidence>, for 3 reasons", 100),
        ("40 <confidence>101</confidence>", 40),
        ("40 <confidence>0.8</confidence>", 40),
        ("40 <confidence>-5</confidence>", 40),
        ("<confidence>0.8</confidence>", None),
        ("<confidence>70%</confidence> 20", 20),
        ("<CONFIDENCE>70</CONFIDENCE>", 70),  # an integer like any other
        ("<confidence>70 20", 20),
        # Two valid blocks: none is the explicit one
        ("<confidence>70</confidence><confidence>80</confidence> of 100", 100),
        ("<confidence>70</confidence><confidence>80</confidence>", 80),
    ],
)
def test_an_explicit_block_is_preferred(text, value):
    assert stated_percent(text) == value


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [("yes", True), (" **No**, since", False), ("NO.", False), ("Well, no", None), ("nothing", None), ("", None)],
)
def test_the_first_word_of_a_graders_reply_decides(reply, verdict):
    assert yes_or_no(reply) is verdict


@given(st.integers(0, 100))
def test_every_integer_and_its_block_mean_the_same(percent):
    assert stated_percent(f"{percent}") == stated_percent(single(confidence=str(percent))) == percent


@pytest.mark.parametrize(
    ("inside", "is_there"), [("yes", True), ("0", True), (" ", False), ("...", False), ("<img src=x onerror=y>", True)]
)
def test_an_answer_of_nothing_but_punctuation_is_none(inside, is_there):
    graded = graded_answer(parse(f"<answer>{inside}</answer><confidence>90</confidence>"))
    reason = why_no_answer(graded["answer"], graded["canonical_answer"], graded["parse_status"])
    assert (reason is None) == is_there


THOUGHT = (
    "Maybe <answer>no</answer><confidence>9</confidence>? </think> So: <answer>yes</answer><confidence>80</confidence>"
)


@pytest.mark.parametrize(
    ("text", "answer", "confidence", "status"),
    [
        (THOUGHT, "yes", 0.8, "valid"),
        (f"<think>{THOUGHT}", "yes", 0.8, "valid"),
        (f"<answer>no</answer></think>{THOUGHT}", "yes", 0.8, "valid"),  # the last end counts
        ("<answer>no</answer><confidence>9</confidence></think>", None, None, "invalid_both"),
        ("<think>no</think><answer>yes</answer>", "yes", None, "invalid_confidence"),
        ("<answer>yes</answer><confidence>80</confidence>", None, None, "no_end_of_thinking"),
        ("", None, None, "no_end_of_thinking"),
    ],
)
def test_the_answer_is_what_follows_the_thinking(text, answer, confidence, status):
    parsed = parse(text, "thinking")
    assert (parsed.answer, parsed.confidence, parsed.status) == (answer, confidence, status)
    span = answer_span(text, "</think>")
    assert (None if span is None else text[span[0] : span[1]]) == answer
    assert span is None or text[: span[2]].endswith("</answer>")
    graded = graded_answer(parsed)
    reason = why_no_answer(graded["answer"], graded["canonical_answer"], graded["parse_status"])
    assert (reason is not None and "thinking" in reason) == (status == "no_end_of_thinking")


# --- formats beside those of the paper
def said(confidence: str) -> str:
    return f"<answer>left lung</answer>\n<confidence>{confidence}</confidence>"


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("likely", 0.7),
        (" Almost\n certain ", 0.95),
        ("ALMOST NO CHANCE", 0.02),
        ("Likely.", 0.7),
        ("about even !", 0.5),
    ],
)
def test_words_stand_for_probabilities(words, value):
    assert parse(said(words), "linguistic") == Parsed(answer="left lung", confidence=value, status="valid")


@pytest.mark.parametrize("words", ["", ".", "very likely", ".likely", "90", "likely, unlikely"])
def test_other_words_are_no_confidence(words):
    assert parse(said(words), "linguistic").status == "invalid_confidence"


def test_the_words_are_ordered_and_all_in_the_prompt():
    from dualread.models import prompts

    text = prompts.template("linguistic")
    assert all(words in text for words in PROBABILITIES)
    assert list(PROBABILITIES.values()) == sorted(PROBABILITIES.values(), reverse=True)


@pytest.mark.parametrize(
    ("stated", "value"),
    [
        ("70, 20, 5, 5", 0.7),
        ("70", 0.7),
        ("90, 60, 30, 20", 0.45),  # 90 of 200
        ("0, 0", 0.0),
        (" 100 ,100", 0.5),
        ("20, 70", 0.2),  # the first one belongs to the answer, whatever follows
    ],
)
def test_the_first_of_several_confidences_is_that_of_the_answer(stated, value):
    assert parse(said(stated), "top_k") == Parsed(answer="left lung", confidence=value, status="valid")


@pytest.mark.parametrize("stated", ["", "101, 3", "70 20", "70,", ".7, .2", "70; 20", ", ".join(["5"] * 11)])
def test_other_lists_are_no_confidences(stated):
    assert parse(said(stated), "top_k").status == "invalid_confidence"


@pytest.mark.parametrize("contract", ["linguistic", "top_k"])
def test_an_answer_twice_is_invalid_in_any_format(contract):
    assert parse(said("likely") + said("70"), contract).status == "invalid_both"


# --- tokens and characters
@given(st.lists(st.binary(min_size=1, max_size=4), min_size=1, max_size=12))
def test_spans_cover_the_text_without_gap_or_overlap(pieces):
    def decode(ids):
        return b"".join(pieces[i] for i in ids).decode(errors="replace")

    text, spans = character_spans(range(len(pieces)), decode)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert all(left[1] == right[0] for left, right in pairwise(spans))


def test_a_character_of_several_tokens_is_of_the_one_that_completes_it():
    pieces = [b"a", b"\xc2", b"\xb0", b"b"]
    decoded = character_spans(range(4), lambda ids: b"".join(pieces[i] for i in ids).decode(errors="replace"))
    assert decoded == ("a\xb0b", [(0, 1), (1, 1), (1, 2), (2, 3)])


def test_a_token_that_straddles_a_boundary_belongs():
    # "<v>", ">up", "per", ".</", "v>" hold [0, 3), [3, 6), [6, 9), [9, 12), [12, 14); the block is [4, 10).
    spans = [(0, 3), (3, 6), (6, 9), (9, 12), (12, 14)]
    assert tokens_within(spans, 4, 10) == (1, 2, 3)
    assert tokens_within(spans, 6, 9) == (2,)
    assert tokens_within(spans, 6, 6) == ()
