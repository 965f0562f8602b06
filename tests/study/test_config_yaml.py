"""Nulls, and text that YAML reads as something else."""

import pytest
import yaml

from dualread.study.config import resolve, without_nulls
from tests.study.embedded import EMBEDDED, merged, problems


def test_a_null_removes_an_entry_at_any_depth():
    assert without_nulls({"a": None, "b": {"c": None, "d": [1, {"e": None}]}}) == {"b": {"d": [1, {}]}}


@pytest.mark.parametrize("spelled", ["null", "Null", "NULL", "~", ""])
def test_a_null_that_was_meant_as_text_is_explained(spelled):
    changes = yaml.safe_load(f"methods: {{question_prior: {{group: {spelled}}}}}")
    message = problems(changes)
    assert "methods.question_prior.group: missing. Its value is null" in message
    assert 'in quotes, as in "Null"' in message
    quoted = yaml.safe_load('methods: {question_prior: {group: "Null"}}')
    assert resolve(merged(EMBEDDED, quoted)).methods["question_prior"].group == "Null"


def test_a_null_setting_is_explained_and_a_missing_one_is_not():
    message = problems({"methods": {"psr": {"settings": {"hidden": None}}}})
    assert "methods.psr.settings.hidden: missing. Its value is null" in message
    assert "is null" not in problems({"methods": {"new": {"label": "New", "actor": "rlvr", "reader": "psr"}}})


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("methods: {psr: {group: Yes}}", "methods.psr.group: True"),
        ("methods: {psr: {label: 2024}}", "methods.psr.label: 2024"),
        ("views: {p_true: {choices: {words: [Yes, No]}}}", "views.p_true.choices.words.1: False"),
        ("tables: {main: {without: [Null]}}", "tables.main.without.0: None"),
        ("datasets: {Null: {}}", "datasets: None"),
        ("study: no", "study: False"),
    ],
)
def test_text_that_yaml_reads_as_something_else_has_to_be_quoted(text, where):
    message = problems(yaml.safe_load(text))
    assert f"{where} is not of type text." in message
    assert "has to be in quotes" in message
