import polars as pl
import pytest

from dualread.declared.tables import LabeledDataset
from dualread.errors import ArtifactError, ConfigError
from dualread.reporting.tables import main
from dualread.stages import build_table
from tests.reporting.tables import cases
from tests.reporting.tables.layouts import TINY, TOKEN, estimate, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body, label

# What the paper prints in bold, read off its Table main.
PAPER_BOLD = {
    ("qwen3-vl-2b", "slake", "auroc", "dualread"),
    ("qwen3-vl-2b", "slake", "natural_ccg_auc", "dualread"),
    ("qwen3-vl-2b", "slake", "strict_ccg_auc", "dualread"),
    ("qwen3-vl-2b", "ood6", "auroc", "saplma"),
    ("qwen3-vl-2b", "ood_ccg", "natural_ccg_auc", "base"),
    ("qwen3-vl-2b", "ood_ccg", "strict_ccg_auc", "base"),
    ("medgemma-1.5-4b", "slake", "auroc", "dualread"),
    ("medgemma-1.5-4b", "slake", "natural_ccg_auc", "dualread"),
    ("medgemma-1.5-4b", "slake", "strict_ccg_auc", "bicr"),
    ("medgemma-1.5-4b", "ood6", "auroc", "saplma"),
    ("medgemma-1.5-4b", "ood_ccg", "natural_ccg_auc", "dualread"),
    ("medgemma-1.5-4b", "ood_ccg", "strict_ccg_auc", "dualread"),
}


def test_the_bold_cells_are_the_papers():
    paper = cases.paper("main")
    bold = paper.cells.filter("bold").select("backbone", "dataset", "metric", "method")
    assert set(bold.rows()) == PAPER_BOLD
    assert paper.tex.count(r"\mathbf") == len(PAPER_BOLD)


def test_rows_of_the_paper():
    paper = cases.paper("main")
    lines = paper.tex.splitlines()
    dcpo = r" & DCPO & $.640_{\pm.003}$ & $.789_{\pm.007}$ & $.554_{\pm.021}$ & $.540_{\pm.022}$ & "
    assert any(line.startswith(dcpo) for line in lines)
    rlvr = next(line for line in lines if line.startswith(" & GRPO (RLVR)"))
    assert rlvr.startswith(r" & GRPO (RLVR) & $.639_{\pm.009}$ & $.535_{\pm.059}$")
    base = next(line for line in lines if "Base" in line)
    assert base.endswith(r"$.450$ & $.696$ & $\mathbf{.782}$ & $\mathbf{.622}$ \\")
    assert sum(line.endswith(r"\\") for line in lines) == 3 + 2 * (1 + 11)  # head, and heading and rows of two blocks


TWO = [method("rlvr", TOKEN), method("psr"), method("question_prior", "Null")]


def tiny(*rows, methods=TWO):
    return build_table.build(main, metrics(*rows), layout(methods, TINY))


def cell(table, method, metric, dataset="slake"):
    chosen = (pl.col("method") == method) & (pl.col("metric") == metric) & (pl.col("dataset") == dataset)
    return table.cells.filter(chosen).row(0, named=True)


def test_ties_at_the_printed_precision_are_all_bold_and_nulls_never():
    table = tiny(
        *over_seeds("rlvr", "auroc", [0.8001] * 3),
        *over_seeds("psr", "auroc", [0.7999] * 3),
        *over_seeds("question_prior", "auroc", [0.9] * 3),
    )
    assert [cell(table, name, "auroc")["bold"] for name in ("rlvr", "psr", "question_prior")] == [True, True, False]


def test_a_shared_accuracy_is_printed_in_the_first_row_of_its_actor_and_dittoed_below():
    lines = body(cases.paper("main"))[:11]
    columns = [[label(line, k) for line in lines] for k in (1, 2, 6)]
    of_others = {
        "Base": "$.443$",
        "RLCR": r"$.608_{\pm.009}$",
        "DCPO": r"$.640_{\pm.003}$",
        "VL-Cal.": r"$.591_{\pm.010}$",
    }
    found = dict(zip(columns[0], columns[1], strict=True))
    assert {name: found.pop(name) for name in of_others} == of_others
    assert found.pop("GRPO (RLVR)") == r"$.639_{\pm.009}$"
    assert set(found) == {"P(True)", "Self-prob.", "Prompt ens.", "SAPLMA", "BICR", "DualRead"}
    assert set(found.values()) == set(columns[2][5:]) == {"''"}
    assert "the same answers, and so the same accuracy, as in the row above" in cases.paper("main").tex


def test_accuracy_is_printed_once_per_actor_and_never_bold():
    rows = [row for name in ("rlvr", "psr", "question_prior") for row in over_seeds(name, "accuracy", [0.5, 0.6, 0.7])]
    table = tiny(*rows)
    accuracy = table.cells.filter((pl.col("metric") == "accuracy") & (pl.col("dataset") == "slake"))
    assert accuracy.select("method", "printed", "bold").rows() == [("rlvr", ".600±.100", False)]
    assert [label(line, 2) for line in body(table)] == [r"$.600_{\pm.100}$", "''", "''"]


def test_methods_of_one_actor_must_agree_on_its_accuracy():
    rows = [*over_seeds("rlvr", "accuracy", [0.5] * 3), *over_seeds("psr", "accuracy", [0.6] * 3)]
    with pytest.raises(ArtifactError, match=r"accuracy of psr on slake is 0.6, of rlvr 0.5"):
        tiny(*rows)


def test_an_actor_whose_methods_are_not_adjacent_is_printed_again():
    methods = [method("rlvr"), method("base", TOKEN, "base"), method("psr")]
    rows = [*over_seeds("rlvr", "accuracy", [0.5] * 3), *over_seeds("psr", "accuracy", [0.5] * 3),
            estimate("base", "accuracy", 0.4, seed=0, actor="base")]  # fmt: skip
    table = tiny(*rows, methods=methods)
    printed = table.cells.filter((pl.col("metric") == "accuracy") & (pl.col("dataset") == "slake"))["printed"]
    assert printed.to_list() == [".500±.000", ".400", ".500±.000"]


def test_an_undefined_value_is_a_dash_with_its_reason():
    rows = over_seeds("psr", "auroc", [0.7, None, 0.9], reason="one class only")
    rows += over_seeds("psr", "natural_ccg_auc", [None] * 3, dataset="ood_ccg", reason="the study has no OOD data sets")
    table = tiny(*rows)
    assert cell(table, "psr", "auroc")["reason"] == "seed 29: one class only"
    assert cell(table, "psr", "auroc")["printed"] == "---"
    assert "no OOD data sets" in cell(table, "psr", "natural_ccg_auc", "ood_ccg")["reason"]
    assert cell(table, "rlvr", "auroc")["reason"] == "not among the study's metrics"
    assert "main.csv has the reason" in table.tex


def test_the_dagger_and_its_note():
    rows = [
        *over_seeds("psr", "strict_ccg_auc", [0.7] * 3),
        *over_seeds("psr", "strict_few_sources", [1.0] * 3),
        *over_seeds("psr", "strict_few_donors", [1.0, 0.0, 0.0]),
        *over_seeds("psr", "strict_detectable", [0.71, 0.7349, 0.73]),
        *over_seeds("psr", "strict_ties", [0.0, 0.1, 0.349]),
    ]
    table = tiny(*rows)
    assert cell(table, "psr", "strict_ccg_auc")["printed"] == ".700±.000†sd"
    assert r"$\mathbf{.700}_{\pm.000}{}^{\dagger\mathrm{sd}}$" in table.tex
    assert "have fewer than 30 distinct source images (s) or donor images (d)." in table.tex
    assert "Such samples tell a CCG-AUC of .735 from .500 (power .8)." in table.tex
    assert r"Of the pairs behind a value, up to 35\% are ties." in table.tex


def test_sizes_of_the_data_sets_are_in_the_head():
    rows = [*over_seeds("psr", "accuracy", [0.5] * 3, n=1061),
            *over_seeds("psr", "accuracy", [0.5] * 3, n=4584, dataset="ood6")]  # fmt: skip
    assert "SLAKE-test ($n=1061$)" in tiny(*rows).tex
    assert "OOD averaged ($n=4584$)" in tiny(*rows).tex


def test_labels_are_escaped():
    odd = [method("psr", "A & B", label="P_{state} 100%")]
    tex = build_table.build(main, metrics(*over_seeds("psr", "auroc", [0.5] * 3)), layout(odd, TINY)).tex
    assert r"A \& B & P\_\{state\} 100\%" in tex


def test_the_study_is_in_the_caption():
    assert r"study embedded \& small." in tiny().tex


def test_exactly_one_data_set_is_in_distribution():
    for names in ("", "ab"):
        with pytest.raises(ConfigError, match="expected exactly one"):
            layout(TWO, datasets=[LabeledDataset(name=name, label=name, id=True) for name in names])
