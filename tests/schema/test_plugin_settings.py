"""The class `Settings` of a plugin is read without importing the plugin, and is the one that the plugin then has."""

import sys

import pytest
from pydantic import ValidationError

from dualread import plugins
from dualread.errors import ConfigError
from dualread.schema.base import NoSettings, settings_class
from dualread.schema.explained import plugin_settings

WITH_SETTINGS = ["corpora", "datasets", "generation", "readers", "training"]
READ = """
import not_installed_anywhere
from typing import Annotated, Literal

from pydantic import Field

from dualread.schema.base import Section

N = 2


class Settings(Section):
    '''Of a dog.'''

    legs: Annotated[int, Field(ge=%s)]
    '''How many.'''
    kind: Literal["small", "large"] = "small"


def score(reader, answers): ...
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that makes tmp_path/dog.py a reader."""
    folders = plugins._folders

    def write(text):
        (tmp_path / "dog.py").write_text(text)
        return tmp_path / "dog.py"

    monkeypatch.setattr(plugins, "_folders", lambda family: [*folders(family), tmp_path])
    for cached in (plugins.known, settings_class):
        cached.cache_clear()
    yield write
    for cached in (plugins.known, settings_class):
        cached.cache_clear()


def test_only_the_class_is_run(write):
    write(READ % 1)
    dog = settings_class("readers", "dog")
    assert dog(legs=4).to_spec() == {"legs": 4, "kind": "small"}
    assert "dualread.readers.dog" not in sys.modules
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        dog(legs=0)
    rows = {place: (kind, meaning) for place, kind, meaning in plugin_settings()}
    assert rows["plugins.readers.dog.legs"] == ("integer, at least 1, required", "How many.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (READ % "N", r"dog\.py: line 12: .*name 'N' is not defined.*dualread\.readers\.settings"),
        (READ.replace("(Section)", "") % 1, r"dog\.py: line 12: the class Settings is not derived from"),
        (READ.replace("Literal[", "Literals[") % 1, r"dog\.py: line 12: .*name 'Literals' is not defined"),
        (READ.replace("Field\n", "Feld\n") % 1, r"dog\.py: line 12: .*cannot import name 'Feld'"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(write, text, message):
    write(text)
    with pytest.raises(ConfigError, match=message):
        settings_class("readers", "dog")


def test_a_plugin_without_settings_has_none():
    assert settings_class("readers", "verbalized") is NoSettings
    with pytest.raises(ConfigError, match="no plugin named 'vebalized'"):
        settings_class("readers", "vebalized")


@pytest.mark.parametrize("family", WITH_SETTINGS)
def test_the_class_is_the_one_that_the_plugin_has_when_it_is_imported(family):
    for name in plugins.known(family):
        imported = getattr(plugins.load(family, name), "Settings", NoSettings)
        assert settings_class(family, name).model_json_schema() == imported.model_json_schema()


def test_every_setting_says_what_it_means():
    assert [place for place, _, meaning in plugin_settings() if len(meaning) < 10] == []
