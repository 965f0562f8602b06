import polars as pl

from dualread.grading.canonical import is_correct
from dualread.models.conditions import asked
from dualread.models.hints import misleading
from dualread.schema.base import Plugin
from tests.stages import shards


def manifest(*rows: dict) -> pl.DataFrame:
    made = shards.manifest_rows(len(rows), split="test", roles=("test",))
    return pl.DataFrame([one | row for one, row in zip(made, rows, strict=True)])


def row(key: str, kind: str, answer: str, options=()) -> dict:
    return {"question_key": key, "answer_type": kind, "reference_answers": [answer], "options": list(options)}


MIXED = manifest(
    row("which organ", "open", "Liver"),
    row("which organ", "open", "the liver"),
    row("which organ", "open", "Lung"),
    row("is it large", "closed", "yes"),
    row("is it small", "closed", "No"),
    row("which one", "open", "a", ["a", "b"]),
    row("what color", "open", "white"),
)


def test_a_hint_is_a_wrong_answer_to_the_same_question_if_there_is_one():
    found = list(misleading(MIXED).values())
    assert found[:6] == ["Lung", "Lung", "Liver", "No", "yes", "b"]
    assert found[6] in ("Liver", "Lung", "a")  # of the same answer type
    assert not any(is_correct(hint, gold) for hint, gold in zip(found, MIXED["reference_answers"], strict=True))
    assert misleading(MIXED.reverse()) == misleading(MIXED)


def test_where_no_answer_to_the_question_is_wrong_one_of_any_type_is_the_hint():
    assert list(misleading(manifest(row("a", "closed", "yes"), row("b", "open", "liver"))).values()) == ["liver", "yes"]


def test_the_hint_is_in_the_prompt():
    found = list(asked(MIXED, prompt="misled", hints=Plugin(module="models.hints")))
    assert found[0].text.endswith("\nAnother reader, who may be wrong, answered: Lung")
