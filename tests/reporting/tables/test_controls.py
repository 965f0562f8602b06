import polars as pl
import pytest

from dualread.declared.tables import LabeledDataset
from dualread.errors import ArtifactError
from dualread.reporting.tables import controls
from dualread.stages import build_table
from tests.reporting.tables.layouts import TINY, TOKEN, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body
from tests.specs import changed

METHODS = [method("rlvr", TOKEN), method("psr"), method("question_prior", "Null")]


def build(*rows, **changes):
    return build_table.build(controls, metrics(*rows), changed(layout(METHODS, TINY), **changes))


def everywhere(metric, values, **key):
    """The same three seeds for every method, one list each."""
    return [row for name, of_seeds in values.items() for row in over_seeds(name, metric, of_seeds, **key)]


def test_a_row_of_controls_with_the_best_value_bold():
    table = build(
        *everywhere("fixed_prefix_ccg_auc", {"rlvr": [0.5] * 3, "psr": [0.7, 0.8, 0.9], "question_prior": [0.95] * 3}),
        *everywhere("strict_same_answer_ccg_auc", {"rlvr": [0.5] * 3, "psr": [0.4] * 3}),
        *everywhere("shuffled_auroc", {"psr": [0.6] * 3}),
    )
    lines = table.tex.splitlines()
    assert r"\multicolumn{8}{@{}l}{\emph{Tiny, SLAKE-test}} \\" in lines
    assert (
        r"PSR & --- & $.400_{\pm.000}$ & $\mathbf{.800}_{\pm.100}$ & '' & '' & $\mathbf{.600}_{\pm.000}$ & --- \\"
        in lines
    )
    bold = set(table.cells.filter("bold").select("method", "metric").rows())
    assert bold == {("psr", "fixed_prefix_ccg_auc"), ("psr", "shuffled_auroc"), ("rlvr", "strict_same_answer_ccg_auc")}


def test_accuracy_on_shuffled_images_is_printed_once_per_actor():
    same = {method.name: [0.3, 0.4, 0.5] for method in METHODS}
    table = build(*everywhere("shuffled_accuracy", same), *everywhere("shuffled_accuracy_drop", same))
    of_actor = [line.split(" & ")[4:6] for line in body(table)]
    assert of_actor == [[r"$.400_{\pm.100}$"] * 2, ["''"] * 2, ["''"] * 2]
    assert len(table.cells) == 3 * 5 + 2
    other = {**same, "psr": [0.3, 0.4, 0.6]}
    with pytest.raises(ArtifactError, match="shuffled_accuracy of psr"):
        build(*everywhere("shuffled_accuracy", other))


def test_an_undefined_control_is_a_dash_with_its_reason():
    why = "no answers under condition donor_fixed_prefix"
    table = build(*over_seeds("psr", "fixed_prefix_ccg_auc", [None] * 3, reason=why))
    row = table.cells.filter(method="psr", metric="fixed_prefix_ccg_auc").row(0, named=True)
    assert (row["printed"], row["reason"]) == ("---", f"seeds 17, 29, 43: {why}")
    assert "controls.csv has the reason" in table.tex


@pytest.mark.parametrize("name", ["fixed_prefix", "strict_same_answer", "shuffled", "strict"])
def test_a_control_on_few_images_has_a_dagger(name):
    table = build(
        *over_seeds("psr", f"{name}_ccg_auc", [0.7] * 3), *over_seeds("psr", f"{name}_few_donors", [0.0, 1.0, 0.0])
    )
    assert table.cells.filter(method="psr", metric=f"{name}_ccg_auc")["printed"][0] == ".700±.000†d"
    assert "Underpowered: the decisive pairs have fewer than 30 distinct donor images (d)." in table.tex


def test_every_data_set_of_the_layout_has_a_block():
    datasets = [
        LabeledDataset(name="slake", label="SLAKE-test", id=True),
        LabeledDataset(name="pmc", label="PMC-VQA", id=False),
    ]
    table = build(*over_seeds("psr", "shuffled_ccg_auc", [0.7] * 3, dataset="pmc"), datasets=datasets)
    assert r"\emph{Tiny, PMC-VQA}" in table.tex
    found = table.cells.filter(pl.col("mean").is_not_null()).select("dataset", "method", "printed").rows()
    assert found == [("pmc", "psr", ".700±.000")]
