"""Settings in print: exact numbers, and which backbone or actor differs from the first."""

from collections.abc import Mapping
from decimal import Decimal

from dualread.reporting.tables._latex import escape

_SMALL = 0.05  # below it a power of ten is easier to read


def number(value: float, name: str = "") -> str:
    r"""Return every digit of `value` as LaTeX: $128$, $10{,}000$, $0.2$, $1.276\!\times\!10^{-4}$; `$<name>...$`."""
    return f"${name}{_digits(value)}$"


def percent(fraction: float) -> str:
    r"""Return a fraction as LaTeX: $5\%$."""
    return rf"${_digits(float(Decimal(repr(fraction)) * 100)).removesuffix('.0')}\%$"


def told_apart(texts: Mapping[tuple[str, ...], str]) -> str:
    """Return the first text and, in parentheses, the other texts with the labels that have them.

    Args:
        texts: LaTeX by labels, such as (backbone, actor). Only the label that
            matters is named: the actor's where all backbones agree.
    """
    first, n_labels = next(iter(texts.values())), len(next(iter(texts)))
    found: dict[str, set[str]] = {}
    for named in [slice(k, k + 1) for k in range(n_labels)] + [slice(None)]:
        found = {}
        for labels, text in texts.items():
            found.setdefault(" with ".join(map(escape, reversed(labels[named]))), set()).add(text)
        if all(len(of_name) == 1 for of_name in found.values()):
            break
    others: dict[str, list[str]] = {}
    for name, (text,) in found.items():
        if text != first:
            others.setdefault(text, []).append(name)
    told = "; ".join(f"{', '.join(names)}: {text}" for text, names in others.items())
    return f"{first} ({told})" if told else first


def _digits(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}".replace(",", "{,}") if value >= 10_000 else str(value)
    if value == 0:
        return "0"
    if abs(value) >= _SMALL:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    mantissa = "-" * sign + ".".join(filter(None, (first, "".join(rest))))
    return rf"{mantissa}\!\times\!10^{{{int(exponent) + len(rest)}}}"
