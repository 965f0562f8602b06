"""What grading says about what it refuses: messages.txt has one message per case."""

from functools import partial
from pathlib import Path

import pytest

from dualread.grading import canonical as module
from dualread.grading.canonical import canonical
from tests import golden
from tests.grading.contracts import parse

# Equivalences of answers that would be ignored.
FORMS = {
    "an equivalence in capitals": {"no": ["Nein"]},
    "an equivalence with an article": {"no": ["the nope"]},
    "an equivalence in the plural": {"no": ["nopes"]},
    "an equivalence with a full stop": {"no": ["n."]},
    "an equivalence of two items": {"both": ["left and right"]},
    "a standard form of two items": {"gallstone, acute": ["stone"]},
    "two standard forms": {"no": ["n"], "none": ["n"]},
    "a standard form that has another": {"ct": ["scan"], "scan": ["slice"]},
}


def forget() -> None:
    for cached in (module._equivalences, module._singular_rules, canonical):
        cached.cache_clear()


@pytest.fixture
def with_forms(monkeypatch):
    """Return a function that says what is refused if the equivalences are `forms`."""

    def message(forms):
        tables = {"forms": forms, "endings": {}, "irregular": {}, "unchanged": []}
        monkeypatch.setattr(module, "_read", lambda name: tables)
        forget()
        return golden.message_of(partial(canonical, "no"))

    yield message
    monkeypatch.undo()
    forget()


def test_the_messages(with_forms):
    found = {name: with_forms(forms) for name, forms in FORMS.items()}
    found["a format of completions that there is not"] = golden.message_of(partial(parse, "", "triple"))
    golden.check(Path(__file__).with_name("messages.txt"), found)
