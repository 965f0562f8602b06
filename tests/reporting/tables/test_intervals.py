from dualread.declared.tables import LabeledDataset
from dualread.reporting.tables import intervals
from dualread.stages import build_table
from tests.reporting.tables.contrasts import row, table
from tests.reporting.tables.layouts import TINY, layout, method
from tests.specs import changed

METHODS = [method("psr", label="PSR"), method("question_prior", "Null", label="Question prior")]
DATASETS = [
    LabeledDataset(name="pmc", label="PMC-VQA", id=False),
    LabeledDataset(name="slake", label="SLAKE-test", id=True),
]


def build(*rows):
    return build_table.build(intervals, table(*rows), changed(layout(METHODS, TINY), datasets=DATASETS))


def test_a_line():
    found = build(
        row("psr", "auroc", 0.8),
        row("psr", "brier", None),
        row("psr", "squared_calibration_error", -0.003),
        row("psr", "natural_ccg_auc", 0.6),
    )
    line = r"PSR & $.800$~$[.700, .900]$ & --- & $-.003$~$[-.103, .097]$ & $.600$~$[.500, .700]$ &  \\"
    assert line in found.tex.splitlines()
    assert found.cells["printed"].to_list() == [".800 [.700, .900]", "---", "-.003 [-.103, .097]", ".600 [.500, .700]"]
    assert found.cells["std"].to_list() == [0.02] * 4
    assert "Only the interval" not in found.tex


def test_with_too_few_images_a_data_set_has_only_an_interval_and_a_mean_has_a_dagger():
    weak = row("psr", "strict_ccg_auc", 0.6, short="source")
    found = build(weak, {**weak, "dataset": "ood_ccg"})
    assert r"PSR &  &  &  &  & $[.500, .700]$ \\" in found.tex
    assert r"PSR &  &  &  &  & $.600{}^{\dagger\mathrm{s}}$~$[.500, .700]$ \\" in found.tex
    assert found.cells["printed"].to_list() == ["[.500, .700]", ".600†s [.500, .700]"]
    assert found.cells["mean"].to_list() == [0.6, 0.6]  # in the file the value is there
    assert found.tex.count("Only the interval is printed where the decisive pairs have fewer than 30") == 1
    assert found.tex.count("$^{\\dagger}$~Underpowered") == 1


def test_one_float_per_data_set_in_distribution_first_and_one_for_the_means():
    found = build(row("question_prior", "auroc", 0.7, dataset="pmc"), row("psr", "auroc", 0.5, dataset="ood6"))
    labels = [line for line in found.tex.splitlines() if line.startswith(r"\label")]
    assert labels == [rf"\label{{tab:intervals:tiny:{name}}}" for name in ("slake", "pmc", "ood")]
    assert found.cells.select("dataset", "method").rows() == [("pmc", "question_prior"), ("ood6", "psr")]
    assert "Intervals of Tiny, PMC-VQA, study embedded" in found.tex


def test_differences_and_other_splits_are_not_shown():
    found = build(
        row("psr", "auroc", 0.8),
        row("psr", "auroc", 0.1, baseline="question_prior", contrast="c"),
        row("psr", "auroc", 0.2, split="validation"),
    )
    assert found.cells["mean"].to_list() == [0.8]


def test_without_replicates_the_interval_is_a_dash():
    found = build(row("psr", "auroc", 0.8, low=None, high=None))
    assert found.cells["printed"].to_list() == [".800 ---"]
    assert r"& $.800$~--- &" in found.tex
