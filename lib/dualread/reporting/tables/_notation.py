"""What a method costs in the paper's notation. Shared by sc_tradeoff and costs."""

from dualread.declared.tables import LabeledMethod
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables.format import DASH

NOTATION = (
    r"Cost in the paper's notation: $t$ is one generated answer, $\rho$ one pass over a prompt alone, "
    r"$\tau$ one replay of prompt and answer; --- where the paper gives none."
)


def label_and_cost(method: LabeledMethod) -> list[str]:
    """Return the first two cells of a method's row: its label and its cost, a dash where the paper gives none."""
    return [escape(method.label), method.cost or DASH]
