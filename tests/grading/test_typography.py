"""Characters that differ in type only are one."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.grading import typography as module
from dualread.grading.canonical import canonical, is_correct, question_key
from dualread.grading.typography import untyped
from tests.drawn import few, texts

DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d\u2e3a\u02d7\u2043"
APOSTROPHES = "\u2019\u2018\u201b\u02bc\u02b9\u2032\u2035\u00b4`\uff07"
UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u202a\u202e\u2066\u2069\u061c\ufe0f\U000e0100\u180e\x00\x7f"
SPACES = "\u00a0\u1680\u2000\u2003\u2007\u2009\u200a\u2028\u2029\u202f\u205f\u3000\t\n\x85"


@pytest.mark.parametrize("dash", DASHES)
def test_every_dash_is_a_hyphen(dash):
    assert canonical(f"T2{dash}weighted") == "t2-weighted"
    assert canonical(f"X{dash}ray") == "x-ray"
    assert canonical(f"5{dash}10") == "5-10"
    assert canonical(f"{dash}5") == "-5"  # a minus sign belongs to its number
    assert canonical(f"{dash} liver") == "liver"
    assert question_key(f"Is the x{dash}ray normal?") == "is the xray normal"


@pytest.mark.parametrize("mark", APOSTROPHES)
def test_every_apostrophe_is_one(mark):
    assert canonical(f"Crohn{mark}s disease") == "crohn's disease"
    assert canonical(f"{mark}yes{mark}") == "yes"


@pytest.mark.parametrize("mark", "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\u301d\uff02")
def test_every_double_quotation_mark_is_one(mark):
    assert canonical(f"the so{mark}called") == 'so"called'


@pytest.mark.parametrize("character", UNSEEN)
def test_what_is_not_seen_vanishes(character):
    assert canonical(f"{character}ye{character}s{character}") == "yes"
    assert canonical(f"left{character} lung") == "left lung"
    assert question_key(f"What{character} is it?") == "what is it"
    assert canonical(character) == ""
    assert not is_correct(character, [character])


@pytest.mark.parametrize("space", SPACES)
def test_every_space_is_one(space):
    assert canonical(f"left{space}{space}lung{space}") == "left lung"


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        ("10\u00b2", "10\u00b2"),
        ("10\u207b\u00b3", "10\u207b\u00b3"),
        ("H\u2082O", "h\u2082o"),
        ("5 \u33a0", "5 cm\u00b2"),  # the one character for square centimetres
        ("\u2460", "1"),  # circled digits name things
        ("\uff11\uff12", "12"),
        ("\u0663", "3"),  # Arabic-Indic
        ("\u1810", "0"),  # Mongolian; the character before it is a variation selector, which is not seen
        ("\u2212\u0663", "-3"),
        ("\u00bd", "1/2"),
        ("1\u00bd", "1 1/2"),  # not 11/2
        ("1\u20442", "1/2"),
        ("\u00b5m", "\u03bcm"),
        ("Myocard\u2122", "myocardtm"),
        ("e\u0301tage", "\u00e9tage"),  # an accent of its own, as NFKC has it
        ("\u00c5ngstr\u00f6m", "\u00e5ngstr\u00f6m"),
        ("caf\u00e9s", "caf\u00e9"),
    ],
)
def test_digits_that_are_raised_lowered_circled_or_of_another_script(answer, form):
    assert canonical(answer) == form


@pytest.mark.parametrize(
    ("one", "other"), [("10\u00b2", "102"), ("H\u2082O", "H2O"), ("1\u00bd", "11/2"), ("x\u00b2", "x\u2082")]
)
def test_what_must_stay_apart(one, other):
    assert canonical(one) != canonical(other)
    assert question_key(one) != question_key(other)


def test_all_other_characters_are_as_in_nfkc():
    for code in (*range(0x20, 0x600), *range(0x1E00, 0x2000), *range(0x3041, 0x3400), 0xAC00, 0xF900, 0xFB01, 0x1D400):
        character = chr(code)
        became = module._CHARACTERS[code]
        if became == "" or any(mark in became for mark in "'\"-\u00b2\u00b3"):
            continue
        if unicodedata.category(character) in ("No", "Nd", "Cf"):
            continue
        assert untyped(f"a{character}b") == unicodedata.normalize("NFKC", f"a{character}b")


@few
@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_text_takes_a_short_way_to_the_same_text(text):
    assert untyped(text) == unicodedata.normalize("NFC", text.translate(module._CHARACTERS))


@few
@given(
    st.one_of(
        texts,
        st.lists(st.one_of(st.sampled_from([*DASHES, *UNSEEN, *SPACES, "and", "lenses", ",", "5"]), texts)).map(
            "".join
        ),
    )
)
def test_the_form_of_a_form_is_itself(text):
    form = canonical(text)
    articles = ("a ", "an ", "the ")  # one article is dropped; behind it, another may stand
    if not any(item.startswith(articles) for item in form.split(", ")):
        assert canonical(form) == form
    assert question_key(question_key(text)) == question_key(text)
    assert untyped(untyped(text)) == untyped(text)


def test_very_many_marks_on_one_letter_take_no_time():
    many = untyped("a" + "\u0323\u0301" * 500_000)  # to order all of them would take hours
    assert len(many) == 30  # the letter with the mark below it, and 29 of the 30 marks that stay
    assert untyped(many) == many
    text = "é" * 20_000
    assert untyped(text.replace("é", "e\u0301")) == text
