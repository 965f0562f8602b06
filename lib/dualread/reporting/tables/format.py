"""Values in print: no leading zero, the standard deviation as a subscript, three decimals by default."""

from dualread.reporting.tables.entries import DASH, Interval, Number
from dualread.reporting.tables.values import Value


def number(value: float, digits: int = 3) -> str:
    """Return `value` with `digits` decimals and without a leading zero, as the paper prints: .952, 1.000, -.013."""
    text = f"{value:.{digits}f}"
    if float(text) == 0.0:
        text = text.removeprefix("-")
    return text.replace("0.", ".", 1) if text.removeprefix("-").startswith("0.") else text


def signed(value: float, digits: int = 3) -> str:
    """Return a difference with its sign: +.130, -.016; .000 where it rounds to zero."""
    text = number(value, digits)
    return text if text.startswith("-") or float(text) == 0.0 else f"+{text}"


def p_text(p: float, *, at_most: bool = False) -> str:
    """Return an adjusted p-value in print: .034, 1, <.001; with the sign for "at most" where it is a limit."""
    if p < 0.001:
        return "<.001"
    return f"{'≤' if at_most else ''}{number(p).removesuffix('.000')}"


def rounded(value: float) -> float:
    """Return `value` rounded as printed, so that values that look equal are equal."""
    return float(f"{value:.3f}") + 0.0


def printed(value: Value, digits: int = 3, *, sign: bool = False, bold: bool = False) -> Number | str:
    """Return a value as a table prints it, the mean in bold where `bold`; a dash where it is undefined."""
    if value.mean is None:
        return DASH
    # A count that is the same in every run needs no deviation.
    spread = "" if value.std is None or (digits, value.std) == (0, 0) else number(value.std, digits)
    mean = signed(value.mean, digits) if sign else number(value.mean, digits)
    return Number(mean, spread, bold, "".join(side[0] for side in value.short), value.by_chance)


def limits(value: Value, ends: str = "") -> Interval | str:
    """Return the interval of a value of contrasts, with signs where it is a difference's; a dash if it has none.

    Args:
        value: A value with a row.
        ends: "" for the interval of these seeds, "_retrained" for that of retrained actors.
    """
    low, high = value.row[f"low{ends}"], value.row[f"high{ends}"]
    if low is None:
        return DASH
    show = number if value.row["baseline"] is None else signed
    return Interval(show(low), show(high))
