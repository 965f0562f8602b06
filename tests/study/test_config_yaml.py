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


@pytest.mark.parametrize(
    ("text", "number"),
    [("5e-5", "5.0e-5"), ("1e5", "1.0e+5"), ("1E-3", "1.0e-3"), ("1e+2", "1.0e+2"), ("2.5e3", "2.5e+3")],
)
def test_a_power_of_ten_that_yaml_reads_as_text_is_explained(text, number):
    message = problems(yaml.safe_load(f"actors: {{rlvr: {{settings: {{learning_rate: {text}}}}}}}"))
    assert f"rlvr.settings.learning_rate: {text!r} is not of type number." in message
    assert f"YAML reads {text} as text; write {number}." in message
    assert yaml.safe_load(number) == float(text)
    message = problems(yaml.safe_load(f"replay: {{kappa: {text}}}"))
    assert f"YAML reads {text} as text; write {number}." in message


def test_an_integer_is_written_without_a_power_of_ten():
    message = problems(yaml.safe_load("actors: {rlvr: {settings: {steps: 1e3}}}"))
    assert "YAML reads 1e3 as text; write 1000." in message
    message = problems(yaml.safe_load("actors: {rlvr: {settings: {steps: many}}}"))
    assert "YAML reads" not in message
