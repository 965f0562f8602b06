"""What one cell of somebody else's table means, by hand."""

import polars as pl
import pytest

from dualread.data.foreign_tables.values import listed, lost_digits, plain_ids, whole


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("['liver', 'hepatic']", ["liver", "hepatic"]),
        ('["liver", "h\\u00e9p"]', ["liver", "hép"]),
        ("['liver' 'hepatic']", ["liver", "hepatic"]),  # numpy; Python would join the two to liverhepatic
        ("['a'\n 'b']", ["a", "b"]),
        ("array(['a', 'b'], dtype=object)", ["a", "b"]),
        ("[\"Crohn's disease\", 'x']", ["Crohn's disease", "x"]),
        ("['a, b', None, nan]", ["a, b"]),
        ("[1, 2.5]", ["1", "2.5"]),
        ("[1. 2.]", ["1", "2"]),
        ("('a', 'b')", ["a", "b"]),
        ("{'a'}", ["a"]),
        ("[]", []),
        *((text, None) for text in ("liver", "[left]", "(A)", "(2)", "(a, b)", "['a'] b", "", "[")),
    ],
)
def test_a_list_in_a_cell(text, items):
    assert listed(text) == items


@pytest.mark.parametrize("text", ["[liver, hepatic]", "['Crohn's disease']", "['a' ... 'z']", "[['a'], ['b']]"])
def test_a_list_that_cannot_be_read_is_refused(text):
    with pytest.raises(ValueError, match="not known"):
        listed(text)


def test_a_whole_number_that_was_stored_as_a_float_is_that_number():
    assert list(map(whole, ("2.0", "-3.0", "2.50", "2", "x2.0", None))) == ["2", "-3", "2.50", "2", "x2.0", None]


def test_ids_without_what_tables_change_in_them():
    ids = pl.Series(["007", "7.0", "0", "CT 01", "a07"])
    assert plain_ids(ids).to_list() == ["7", "7", "0", "ct01", "a07"]


@pytest.mark.parametrize(
    ("ids", "lost"),
    [
        (["1.23E+17", "2", None], [True, False, None]),  # 17 digits, of which three are left
        (["1e5", "7"], [False, False]),  # one digit of an exponent is a name such as 1e5
        (["1.23E+17", "ct-01"], [False, False]),  # beside names that are no numbers
        ([1.23e17, 3.0], [True, False]),
        ([123456789012345.0], [False]),  # which a float holds
    ],
)
def test_numbers_that_lost_digits_stand_for_many_ids(ids, lost):
    assert lost_digits(pl.Series(ids)).to_list() == lost
