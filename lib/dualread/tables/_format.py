"""How a value is printed: three decimals, no leading zero, the standard deviation as a subscript."""

from dualread.tables._values import Value

DASH = "---"


def number(value: float) -> str:
    """Return `value` with three decimals and without a leading zero, as the paper prints: .952, 1.000, -.013."""
    text = f"{value:.3f}"
    if float(text) == 0.0:
        return ".000"  # never -.000
    return text.replace("0.", ".", 1) if text.removeprefix("-").startswith("0.") else text


def rounded(value: float) -> float:
    """Return `value` as a reader of the table sees it; equal printed values are equal."""
    return float(f"{value:.3f}") + 0.0


def plain(value: Value) -> str:
    """Return `value` as text, for the CSV: .952±.004, with a dagger where it is underpowered."""
    if value.mean is None:
        return DASH
    spread = "" if value.std is None else f"±{number(value.std)}"
    return f"{number(value.mean)}{spread}{'†' if value.underpowered else ''}"


def latex(value: Value, *, bold: bool) -> str:
    r"""Return `value` as LaTeX: $.952_{\pm.004}$, the mean in bold where `bold`."""
    if value.mean is None:
        return DASH
    mean = f"\\mathbf{{{number(value.mean)}}}" if bold else number(value.mean)
    spread = "" if value.std is None else f"_{{\\pm{number(value.std)}}}"
    # After an empty group, so that it follows the subscript instead of standing on it.
    dagger = r"{}^{\dagger}" if value.underpowered else ""
    return f"${mean}{spread}{dagger}$"
