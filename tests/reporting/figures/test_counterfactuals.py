import polars as pl
import pytest
from PIL import Image

from dualread.reporting.figures import counterfactuals
from dualread.schema.tables import FigureLayout
from tests.reporting.figures.answers import labeled
from tests.specs import changed

LAYOUT = FigureLayout(study="embedded", backbones=labeled(tiny="Tiny"), methods=labeled(psr="PSR", rlvr="GRPO (RLVR)"))


def pair(sample_id, real, donor, *, answers=("yes", "no"), correct=(True, False), **other):
    return {
        **{"backbone": "tiny", "method": "psr", "dataset": "slake", "seed": 17, "sample_id": sample_id},
        **{"question": f"What does {sample_id} show, and is there anything else that must be seen in this image?"},
        **{"source_image_id": f"{sample_id}-source", "donor_image_id": f"{sample_id}-donor"},
        **{"canonical_answer_real": answers[0], "canonical_answer_donor": answers[1]},
        **{"correct_real": correct[0], "correct_donor": correct[1]},
        **{"confidence_real": real, "confidence_donor": donor},
        **{"reference_real": ["yes"], "reference_donor": ["left upper lobe of the lung", "lobe"]},
        **other,
    }


# Drops of the answers that change: a 1/4, b 1/2, c 1/2, d -1/8; of those that stay: e 3/4, f 1/8. g is not decisive.
PAIRS = [
    *(pair("a", 0.75, 0.5), pair("b", 0.75, 0.25), pair("c", 1.0, 0.5), pair("d", 0.5, 0.625)),
    *(pair("e", 1.0, 0.25, answers=("yes", "yes")), pair("f", 0.5, 0.375, answers=("yes", "yes"))),
    pair("g", 1.0, 0.0, correct=(True, True)),
]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    path = tmp_path_factory.mktemp("images") / "image.png"
    Image.new("RGB", (8, 6), "gray").save(path)
    return str(path)


def table(rows, image):
    told = [{**row, "method": "rlvr", "confidence_real": 1.0, "confidence_donor": 1.0} for row in rows]
    return pl.DataFrame([{**row, "images_real": [image], "images_donor": [image, image]} for row in (*rows, *told)])


def ids(rows):
    return {key: row["sample_id"] for key, row in counterfactuals.choose(pl.DataFrame(rows)).items()}


def test_the_greatest_median_and_smallest_drops_are_chosen_and_ties_by_id():
    # in order: b and c (1/2 each), a (1/4), d (-1/8); the median is the greater of the two in the middle
    assert ids(PAIRS) == {
        ("natural", "greatest"): "b",
        ("natural", "median"): "c",
        ("natural", "smallest"): "d",
        ("strict", "greatest"): "e",
        ("strict", "smallest"): "f",
    }
    assert ids(PAIRS[::-1]) == ids(PAIRS)


@pytest.mark.parametrize(("n", "cases"), [(0, []), (1, ["greatest"]), (2, ["greatest", "smallest"])])
def test_no_pair_is_shown_twice(n, cases):
    strict = PAIRS[4:]
    found = counterfactuals.choose(pl.DataFrame(PAIRS[:n] + strict))
    assert [case for kind, case in found if kind == "natural"] == cases


def test_what_is_drawn_is_listed_for_every_method(image):
    drawing = counterfactuals.draw({"pairs": table(PAIRS, image)}, LAYOUT)
    first = drawing.values.filter(kind="natural", case="greatest")
    assert first.select("sample_id", "method", "confidence_real", "confidence_donor").rows() == [
        ("b", "psr", 0.75, 0.25),
        ("b", "rlvr", 1.0, 1.0),
    ]
    assert first["reference_donor"][0] == "left upper lobe of the lung | lobe"
    natural, strict = drawing.figure.subfigs
    greatest, _, _ = natural.subfigs
    assert greatest.get_suptitle().startswith("greatest drop (0.50)\nWhat does b show,")
    source, donor, *bars = greatest.axes
    assert source.get_title() == "source: yes\nright"
    assert donor.get_title().replace("\n", " ") == "donor: no wrong, gold: left upper lobe of the lung"
    assert [[bar.get_width() for bar in axes.patches] for axes in bars] == [[0.75, 1.0], [0.25, 1.0]]
    assert [part.texts[0].get_text() for part in strict.subfigs if not part.axes] == ["no further pair"]


def test_a_study_without_decisive_pairs_says_so(image):
    drawing = counterfactuals.draw({"pairs": table(PAIRS[-1:], image)}, LAYOUT)
    assert drawing.values.is_empty()
    texts = [part.texts[0].get_text() for row in drawing.figure.subfigs for part in row.subfigs]
    assert texts == ["no such pair"] * 6


def test_every_backbone_has_a_page(image):
    pairs = table(PAIRS, image)
    layout = changed(LAYOUT, backbones=labeled(tiny="Tiny", other="Other"))
    both = pl.concat([pairs, pairs.with_columns(backbone=pl.lit("other"))])
    drawing = counterfactuals.draw({"pairs": both}, layout)
    assert [page.get_suptitle() for page in (drawing.figure, *drawing.further)] == ["Tiny", "Other"]
