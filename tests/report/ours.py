"""One table of every kind that the library makes: those of the paper with its numbers, the others from small frames."""

from dualread.tables import (
    branches,
    by_family,
    calib,
    cascade,
    ccg,
    ccg_denom,
    ccg_ood,
    channel,
    controls,
    costs,
    data,
    main,
    ood_acc,
    reliability,
    sc_tradeoff,
)
from dualread.tables._layout import Layout
from dualread.tables._published import published
from tests.tables import (
    test_calib,
    test_ccg,
    test_ccg_denom,
    test_ccg_ood,
    test_channel,
    test_costs,
    test_data,
    test_hparams,
    test_intervals,
    test_ood_acc,
    test_paired,
    test_reliability,
    test_sc_tradeoff,
    test_significance,
)
from tests.tables.contrasts import row
from tests.tables.layouts import (
    CASCADE_METHODS,
    HIDDEN,
    PAPER_METHODS,
    TINY,
    data_rows,
    layout,
    method,
    metrics,
    over_seeds,
)

_COSTS = {**layout(test_costs.METHODS), "datasets": test_costs.DATASETS}
PUBLISHED = {
    "main": (main, published("main"), layout(PAPER_METHODS)),
    "cascade": (cascade, published("cascade"), layout(CASCADE_METHODS)),
    "calib": (calib, published("calib"), test_calib.PAPER),
    "ccg": (ccg, test_ccg.published_values(), test_ccg.PAPER),
    "ccg_denom": (ccg_denom, test_ccg_denom.published_values(), test_ccg_denom.PAPER),
    "ccg_ood": (ccg_ood, published("ccg_ood"), test_ccg_ood.PAPER),
    "channel": (channel, test_channel.published_values(), test_channel.PAPER),
    "costs": (costs, published("sc_tradeoff"), _COSTS),
    "ood_acc": (ood_acc, published("ood_acc"), test_ood_acc.PAPER),
    "reliability": (reliability, published("reliability"), test_reliability.PAPER),
    "sc_tradeoff": (sc_tradeoff, published("sc_tradeoff"), test_sc_tradeoff.PAPER),
}


def of_the_paper(name):
    """The LaTeX of a table with the numbers that the paper prints."""
    module, values, shown = PUBLISHED[name]
    return module.render(values, Layout.parse(shown)).tex


def small(name):
    """The LaTeX of a table that the paper does not print with numbers of ours."""
    psr = [method("psr", HIDDEN)]
    some = metrics(*over_seeds("psr", "auroc", [0.5, 0.6, 0.7]))
    contrast = row("dualread", "auroc", 0.13, baseline="rlcr", contrast="c", underpowered=True)
    tables = {
        "branches": lambda: branches.build(some, layout(psr, TINY)),
        "by_family": lambda: by_family.build(some, layout(psr, TINY)),
        "controls": lambda: controls.build(some, layout(psr, TINY)),
        "data": lambda: data.build(data_rows(test_data.PMC), {**layout([]), "datasets": test_data.DATASETS}),
        "hparams": lambda: test_hparams.rows_of({})[0],
        "intervals": lambda: test_intervals.build(row("psr", "auroc", 0.8)),
        "paired": lambda: test_paired.build(contrast),
        "significance": lambda: test_significance.build({**contrast, "contrast": "significance"}),
    }
    return tables[name]().tex


SMALL = ("branches", "by_family", "controls", "data", "hparams", "intervals", "paired", "significance")
