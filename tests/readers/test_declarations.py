"""A reader's declarations are read with defaults, and what is wrong with them is named before anything runs."""

import sys

import pytest

from dualread import plugins, readers
from dualread.errors import ConfigError
from dualread.readers import declarations
from dualread.readers.base import Examples, Weights, fit

SCORE = "\n\ndef score(reader, answers):\n    raise NotImplementedError\n"
FIT = "\n\ndef fit(examples, settings, parents, seed):\n    raise NotImplementedError\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write the reader `mine` into a further folder of the family."""
    places = [*readers.__path__, str(tmp_path)]
    monkeypatch.setattr(readers, "__path__", places)  # where modules are imported from, and where plugins are found
    monkeypatch.setattr(readers.__spec__, "submodule_search_locations", places)

    def forget() -> None:
        plugins.known.cache_clear()
        plugins.declared.cache_clear()
        sys.modules.pop("dualread.readers.mine", None)

    def written(text: str) -> None:
        (tmp_path / "mine.py").write_text(text)
        forget()

    yield written
    forget()


def problems(parents=(), views=()) -> list[str]:
    return list(declarations.problems("mine", parents, views))


def test_a_reader_that_is_not_fitted_is_a_score_function_alone(write):
    write('"""Mine."""' + SCORE)
    assert problems() == []
    found = {
        name: declarations.declared("readers.mine", name) for name in ("FEATURES", "PARENTS", "FITTED_ON", "VIEWS")
    }
    assert found == {"FEATURES": (), "PARENTS": (), "FITTED_ON": None, "VIEWS": None}
    assert fit("readers.mine", Examples.none(), {}, {}, 0) == Weights()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FIT + SCORE, ["'mine'", "defines `fit` but no FITTED_ON", '"train" or "validation"']),
        ('FITTED_ON = "train"' + SCORE, ["'mine'", "FITTED_ON is 'train'", "no function `fit`"]),
        ('FITTED_ON = "test"' + FIT + SCORE, ["'mine'", "FITTED_ON is 'test'", '"train" or "validation"']),
        ('VIEWS = "always"' + SCORE, ["'mine'", "VIEWS is 'always'", '"fit" or "score"']),
        ('FEATURES = ("h_pre")' + SCORE, ["'mine'", "FEATURES is 'h_pre'", '("name",)']),
        ("PARENTS = {'pre': 'psr'}" + SCORE, ["'mine'", "PARENTS is {'pre': 'psr'}", '("name",)']),
    ],
)
def test_a_wrong_declaration_is_named_with_the_reader(write, text, expected):
    write(text)
    found = next(problem for problem in problems() if problem.startswith("reader: "))
    assert all(part in found for part in expected), found


def test_the_config_entry_lists_the_parents_on_which_the_reader_builds(write):
    write('PARENTS = ("pre", "post")' + SCORE)
    assert problems(parents={"pre": "psr", "post": "per"}) == []
    (missing,) = problems(parents={"pre": "psr"})
    assert missing == "parents: ['pre']; the reader 'mine' builds on pre, post."
    write(SCORE)
    (unexpected,) = problems(parents={"pre": "psr"})
    assert unexpected == "parents: ['pre']; the reader 'mine' builds on none."


def test_a_constant_that_is_no_literal_is_refused(write):
    write("VIEWS = str()" + SCORE)
    with pytest.raises(ConfigError, match=r"VIEWS is str\(\), which is not a literal"):
        problems()
