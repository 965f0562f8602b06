"""What a method costs in the paper's notation. Shared by sc_tradeoff and costs."""

from dualread.reporting.tables._latex import escape
from dualread.reporting.tables.format import DASH
from dualread.reporting.tables.layout import Method

NOTATION = (
    r"Cost in the paper's notation: $t$ is one generated answer, $\rho$ one pass over a prompt alone, "
    r"$\tau$ one replay of prompt and answer; --- where the paper has none."
)


def label_and_cost(method: Method) -> list[str]:
    """Return what stands before the cells of a method's row: its label and, where the paper has one, its cost."""
    return [escape(method.label), method.cost or DASH]
