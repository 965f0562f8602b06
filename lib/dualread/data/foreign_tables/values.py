"""What one cell of somebody else's table means: a list that was written as text, a whole number, an id."""

import ast
import json
import re

import polars as pl

_STORED_AS_FLOAT = re.compile(r"([+-]?[0-9]+)\.0")
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_ITEM = re.compile(
    r"\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<word>None|null|nan|NaN|True|False|true|false))(?=[\s,'\"]|$)\s*,?",
    re.DOTALL,
)
_OF_NUMPY = re.compile(r"array\((.*?)(?:,\s*dtype=[\w<>'\"]+)?\)", re.DOTALL)
LOST = "a spreadsheet or a float cut them"
_MISSING = ("None", "null", "nan", "NaN")


def listed(text: str) -> list[str] | None:
    """Return the texts of a list that was written into one cell, as JSON, Python or numpy print it.

    Returns:
        The texts in their order, without missing ones; None if the cell is an ordinary text.

    Raises:
        ValueError: The text begins and ends as a list of several items, but is none of these.
    """
    inner = found[1].strip() if (found := _OF_NUMPY.fullmatch(text.strip())) else text.strip()
    if len(inner) < 2 or inner[-1] != _BRACKETS.get(inner[0]):
        return None
    items, place, body = [], 0, inner[1:-1].rstrip()
    while place < len(body):
        if (item := _ITEM.match(body, place)) is None:
            if inner[0] == "[" and re.search(r"[,'\"]", body):
                raise ValueError("a list in a form that is not known")
            return None
        place = item.end()
        if item["text"] is not None:
            items.append(_unquoted(item["text"]))
        elif inner[0] != "[" and not items:
            return None  # (2) and {3} are texts
        elif item["word"] not in _MISSING:
            items.append(item["word"] or item["number"].removesuffix("."))  # numpy prints 1.0 as 1.
    return items


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        try:
            return str(ast.literal_eval(text.replace("\n", "\\n").replace("\r", "\\r")))
        except (SyntaxError, ValueError) as error:
            raise ValueError("a list in a form that is not known") from error


def whole(text: str | None) -> str | None:
    """Return a whole number that a table stored as a float, "2.0", as "2"; any other text as it is."""
    if text is None or (found := _STORED_AS_FLOAT.fullmatch(text)) is None:
        return text
    return found[1]


def plain_ids(ids: pl.Series) -> pl.Series:
    """Return names without what tables change in them: upper case, white space, zeros that do not count.

    "007", "7" and "7.0" are "7"; "CT 01" and "ct01" are "ct01". Two names that are equal only so are probably one.
    """
    text = ids.str.to_lowercase().str.replace_all(r"\s+", "")
    return text.str.replace(r"^0*([0-9]+?)(?:\.0+)?$", "${1}")


def lost_digits(ids: pl.Series) -> pl.Series:
    """Return whether each id is a number that a spreadsheet or a float has cut, bool [n]; null where there is no id.

    Such as 1.23E+17, which stands for many ids. In a column that also has other names, it is a name itself.

    Args:
        ids: Texts [n], null where there is none; or floats [n].
    """
    text = ids.cast(pl.String)
    lost = text.str.contains(r"^[0-9](?:\.[0-9]+)?[eE]\+?[0-9]{2,}$")
    if ids.dtype.is_float():
        lost |= text.str.contains(r"^[0-9]{16,}")
    return lost & text.drop_nulls().cast(pl.Float64, strict=False).is_not_null().all()
