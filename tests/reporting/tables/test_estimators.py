from dualread.reporting.tables import estimators
from dualread.stages import build_table
from tests.reporting.tables.layouts import TINY, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body

METHODS = [
    method("sequence_likelihood", "Likelihood", label="Sequence likelihood", cost="$t$"),
    method("lmp_lexical", "LM-Polygraph", label="Lexical_similarity", cost="$8t$"),
]


def rows_of(name, values):
    """In distribution, then the means: over all data sets for answers, and over those with donors for pairs."""
    metric_names = ("auroc", "brier", "natural_ccg_auc")
    own, ood = values[:3], values[3:]
    yield from (row for m, v in zip(metric_names, own, strict=True) for row in over_seeds(name, m, v))
    places = ("ood6", "ood6", "ood_ccg")
    for metric, place, value in zip(metric_names, places, ood, strict=True):
        yield from over_seeds(name, metric, value, dataset=place)


def test_a_line_per_method_with_its_cost_and_its_group():
    ours = [[0.9, 0.9, 0.9], [0.2, 0.2, 0.2], [0.6, 0.6, 0.6], [0.8, 0.8, 0.8], [0.2, 0.2, 0.2], [0.55, 0.55, 0.55]]
    theirs = [[0.7, 0.7, 0.7], [0.1, 0.1, 0.1], [0.6, 0.6, 0.6], [0.9, 0.9, 0.9], [0.3, 0.3, 0.3], [None] * 3]
    rows = [*rows_of("sequence_likelihood", ours), *rows_of("lmp_lexical", theirs)]
    table = build_table.build(estimators, metrics(*rows), layout(METHODS, TINY))
    bold = [of for of in table.cells.select("method", "metric", "dataset", "bold").iter_rows() if of[-1]]
    assert [of[:3] for of in bold] == [
        ("sequence_likelihood", "auroc", "slake"),
        ("sequence_likelihood", "natural_ccg_auc", "slake"),  # a tie
        ("sequence_likelihood", "brier", "ood6"),
        ("sequence_likelihood", "natural_ccg_auc", "ood_ccg"),
        ("lmp_lexical", "brier", "slake"),
        ("lmp_lexical", "natural_ccg_auc", "slake"),
        ("lmp_lexical", "auroc", "ood6"),
    ]
    first, second = body(table)
    assert first.startswith(r"Sequence likelihood & $t$ & Likelihood & $\mathbf{.900}_{\pm.000}$ & $.200_{\pm.000}$ & ")
    assert second.startswith(r"Lexical\_similarity & $8t$ & LM-Polygraph & $.700_{\pm.000}$ & $\mathbf{.100}_{")
    assert second.endswith(r" & --- \\")


def test_a_study_without_the_estimators_has_the_reason_in_the_csv():
    table = build_table.build(estimators, metrics(), layout(METHODS[1:], TINY))
    assert table.cells["reason"].unique().to_list() == ["not among the study's metrics"]
