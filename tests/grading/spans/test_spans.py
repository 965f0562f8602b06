"""Where claims are, and which labels they get, by hand; what is refused stands in messages.txt."""

from pathlib import Path

import polars as pl
import pytest

from dualread.grading.claim_labels import table
from dualread.grading.claim_labels.base import Claim, claim_id
from dualread.grading.spans import entities, sentences
from dualread.grading.spans.base import Report, checked_spans
from dualread.schema.base import NoSettings
from tests import golden

TEXT = "<answer>No effusion. A lesion.</answer>"
ENTITIES, LABELS = entities.Settings(path="e.csv"), table.Settings(path="l.csv")


def texts(text, thinking_ends=None):
    report = Report.of("q", text, thinking_ends)
    [found] = checked_spans([report], sentences.spans([report], NoSettings(), None), "here")
    return [text[start:end] for start, end in found]


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("<answer> No effusion. A lesion! </answer><confidence>9</confidence>", ["No effusion.", "A lesion!"]),
        (
            "no block: it is 5.2 cm wide, i.e. large. \nnext line",
            ["no block: it is 5.2 cm wide, i.e. large.", "next line"],
        ),
        ("1. Left lung clear.\n2) E. coli?\n- right", ["Left lung clear.", "E. coli?", "right"]),
        ('He said "clear." Then (no more.) End', ['He said "clear."', "Then (no more.)", "End"]),
        ("Is it? ... -- !", ["Is it?"]),
        ("Effusion? No. As in image no. 3.", ["Effusion?", "No.", "As in image no. 3."]),
        ("Lesion of grade 2. No more.", ["Lesion of grade 2.", "No more."]),
        ("<answer> </answer><confidence>9</confidence>", []),
        ("", []),
        (". !\n", []),
    ],
)
def test_sentences(text, claims):
    assert texts(text) == claims


def test_thinking_is_no_part_of_a_report():
    assert texts("Maybe a lesion. </think> Clear. <answer>Yes.</answer>", "</think>") == ["Yes."]
    assert texts("Maybe a lesion.</think> Clear. Yes.", "</think>") == ["Clear.", "Yes."]
    assert texts("Maybe a lesion. Clear.", "</think>") == []


def entity_rows(*rows, **columns):
    names = ("question", "start", "end")
    return pl.DataFrame([dict(zip(names, row, strict=True)) | columns for row in rows])


def entity_spans(rows):
    return entities.spans([Report.of("q", TEXT, None), Report.of("r", "x", None)], ENTITIES, rows)


def test_entities_are_those_of_the_table():
    assert entity_spans(entity_rows(("q", 23, 29), ("other", 0, 900), ("q", 11, 19), ("q", 11, 19))) == [
        [(11, 19), (23, 29)],
        [],
    ]
    # Entities may touch, and a text may begin and end with one.
    touching = entity_rows(("q", 0, 11), ("q", 11, len(TEXT)))
    assert entity_spans(touching) == [[(0, 11), (11, len(TEXT))], []]
    # A table of several actors' reports says which completion a row is of.
    rows = entity_rows(("q", 0, 900), report="another completion").vstack(entity_rows(("q", 11, 19), report=TEXT))
    assert entity_spans(rows) == [[(11, 19)], []]


def claim(text, k=0, condition="original"):
    place = {"start": 0, "end": len(text), "image_id": "i", "references": ("A lesion.",)}
    return Claim(id=claim_id("q", k), sample_id="q", condition=condition, text=text, **place)


def labels(claims, *rows):
    names = ("question", "condition", "text", "label")
    frame = pl.DataFrame([dict(zip(names, row, strict=True)) for row in rows])
    return table.supported(claims, LABELS, frame)


def test_labels_are_those_of_the_text_and_of_what_is_shown(capsys):
    claims = [claim("No effusion."), claim("A lesion.", 1), claim("Big.", 2)]
    donor = [claim("A lesion.", 1, "donor_fixed_prefix")]
    rows = [
        ("q", None, "A lesion.", "yes"),
        ("q", "original", "No effusion.", "0"),
        ("q", "donor_fixed_prefix", "A lesion.", "false"),
        ("q", "original", "Big.", ""),
        ("q", "original", "Small.", "1"),
        ("other", "original", "No effusion.", "1"),
    ]
    assert labels(claims, *rows) == [False, True, None]
    assert "1 labels are for no claim" in capsys.readouterr().err
    assert labels(donor, *rows) == [False]
    assert table.supported(claims, table.Settings(), None) == [None] * 3


def test_messages():
    report = Report.of("q", TEXT, None)
    cases = {
        "overlap": lambda: checked_spans([report], [[(8, 12), (11, 14)]], "slake/test/original"),
        "outside": lambda: checked_spans([report], [[(8, 400)]], "slake/test/original"),
        "empty": lambda: checked_spans([report], [[(8, 8)]], "slake/test/original"),
        "a report too few": lambda: checked_spans([report], [], "slake/test/original"),
        "entity outside": lambda: entity_spans(entity_rows(("q", 30, 90))),
        "entity of another text": lambda: entity_spans(entity_rows(("q", 11, 19), text="fluid")),
        "entities that overlap": lambda: entity_spans(entity_rows(("q", 11, 19), ("q", 8, 12))),
        "no number": lambda: entity_spans(entity_rows(("q", "-1", "3"))),
        "no column": lambda: entities.spans([report], ENTITIES, pl.DataFrame({"question": ["q"]})),
        "no value": lambda: entity_spans(entity_rows(("q", None, 3))),
        "no label": lambda: labels([claim("A lesion.")], ("q", None, "A lesion.", "maybe")),
        "two labels": lambda: labels([claim("A.")], ("q", None, "A.", "1"), ("q", "original", "A.", "0")),
        "labels for no claim": lambda: labels([claim("A lesion.")], ("q", None, "a lesion", "1")),
    }
    golden.check(
        Path(__file__).with_name("messages.txt"), {name: golden.message_of(ask) for name, ask in cases.items()}
    )
