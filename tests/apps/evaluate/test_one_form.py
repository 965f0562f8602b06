"""One é, whatever characters it is of; and images that choose a threshold and judge it."""

import unicodedata

import pytest

import dualread
from dualread.errors import ConfigError, DataError


def answers(images, ids, n=40):
    return {
        "sample_id": [f"{ids}{k}" for k in range(n)],
        "image_id": [f"{images}{k // 2}" for k in range(n)],
        "method": ["é"] * n,
        "confidence": [(k % 7 + 1) / 8 for k in range(n)],
        "correct": [k % 3 > 0 for k in range(n)],
    }


def decomposed(table):
    return {
        name: [unicodedata.normalize("NFD", of) if isinstance(of, str) else of for of in column]
        for name, column in table.items()
    }


def test_an_e_with_an_accent_is_one_method_and_one_question():
    table, other = answers("é", "é"), decomposed(answers("é", "é"))
    both = {name: [*table[name][:20], *other[name][20:]] for name in table}
    found = dualread.evaluate(both, replicates=0)
    assert found.metrics["method"].unique().to_list() == ["é"]
    assert found.metrics.equals(dualread.evaluate(table, replicates=0).metrics)


def test_calibration_with_the_same_questions_in_other_characters_is_noticed():
    mine, theirs = answers("é", "é"), decomposed(answers("é", "é"))
    theirs["confidence"] = theirs["confidence"][::-1]
    found = dualread.evaluate(mine, calibration=theirs, target_risk=0.5, replicates=0)
    assert [said for said in found.warnings if "40 of 40 questions" in said]


@pytest.mark.parametrize(("images", "n"), [("é", 1), ("other", 0)])
def test_other_questions_about_the_calibration_images_are_noticed(images, n):
    calibration = answers(images, "another", 38)
    found = dualread.evaluate(answers("é", "q"), calibration=calibration, target_risk=0.5, replicates=0)
    assert sum("19 of 20 images" in said for said in found.warnings) == n


def test_few_resamples_are_refused():
    for replicates in (1, 2, 38):
        with pytest.raises(ConfigError):
            dualread.evaluate(answers("i", "q"), replicates=replicates)
        with pytest.raises(DataError):
            dualread.evaluate(answers("i", "q") | {"replicates": [replicates] * 40})
    assert dualread.evaluate(answers("i", "q"), replicates=39).replicates == 39
