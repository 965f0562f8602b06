"""Values in print: no leading zero, the standard deviation as a subscript, three decimals by default."""

from collections.abc import Sequence

from dualread.reporting.tables.values import Value

DASH = "---"


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


def plain(value: Value, digits: int = 3, *, sign: bool = False) -> str:
    """Return `value` as text, for the CSV: .952±.004, with a dagger where images are few, a circle where by chance."""
    if value.mean is None:
        return DASH
    spread = f"±{text}" if (text := _deviation(value, digits)) else ""
    return f"{_mean(value.mean, digits, sign)}{spread}{dagger(value.short)}{'°' if value.by_chance else ''}"


def latex(value: Value, *, bold: bool, digits: int = 3, sign: bool = False) -> str:
    r"""Return `value` as LaTeX: $.952_{\pm.004}$, the mean in bold where `bold`."""
    if value.mean is None:
        return DASH
    text = _mean(value.mean, digits, sign)
    mean = f"\\mathbf{{{text}}}" if bold else text
    spread = f"_{{\\pm{text}}}" if (text := _deviation(value, digits)) else ""
    circle = r"{}^{\circ}" if value.by_chance else ""
    return f"${mean}{spread}{tex_dagger(value.short)}{circle}$"


def limits(value: Value, ends: str = "") -> str:
    """Return the interval of a value of contrasts, [.941, .962], with signs where it is a difference's; a dash if none.

    Args:
        value: A value with a row.
        ends: "" for the interval of these seeds, "_retrained" for that of retrained actors.
    """
    low, high = value.row[f"low{ends}"], value.row[f"high{ends}"]
    if low is None:
        return DASH
    show = number if value.row["baseline"] is None else signed
    return f"[{show(low)}, {show(high)}]"


def dagger(short: Sequence[str]) -> str:
    """Return the mark of a CCG value on few images, with the initials of the sides that are short: †s, †d, †sd."""
    return f"†{''.join(side[0] for side in short)}" if short else ""


def tex_dagger(short: Sequence[str]) -> str:
    """Return the same mark in LaTeX's notation, for a formula."""
    # After an empty group, so that it follows the subscript instead of standing on it.
    return rf"{{}}^{{\dagger\mathrm{{{''.join(side[0] for side in short)}}}}}" if short else ""


def _mean(mean: float, digits: int, sign: bool) -> str:
    return signed(mean, digits) if sign else number(mean, digits)


def _deviation(value: Value, digits: int) -> str:
    # A count that is the same in every run needs no deviation.
    return "" if value.std is None or (digits == 0 and value.std == 0) else number(value.std, digits)
