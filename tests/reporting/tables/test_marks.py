"""What is printed around a number of a sheet: dashes, daggers, circles, ditto marks, bold print."""

import polars as pl
import pytest

from dualread.errors import ArtifactError, ConfigError
from dualread.plugins import load
from dualread.schema.tables import LabeledDataset
from dualread.stages import build_table
from tests.reporting.tables import cases
from tests.reporting.tables.layouts import TINY, TOKEN, datasets, estimate, layout, method, metrics, over_seeds
from tests.reporting.tables.reading import body, label
from tests.specs import changed

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
TWO = [method("rlvr", TOKEN), method("psr"), method("question_prior", "Null")]


def build(name, *rows, methods=TWO, **changes):
    return build_table.build(load("tables", name), metrics(*rows), changed(layout(methods, TINY), **changes))


def cell(table, method, metric, dataset="slake"):
    chosen = (pl.col("method") == method) & (pl.col("metric") == metric) & (pl.col("dataset") == dataset)
    return table.cells.filter(chosen).row(0, named=True)


def of_all(metric, values, **key):
    """The same three seeds for every method, one list each."""
    return [row for name, of_seeds in values.items() for row in over_seeds(name, metric, of_seeds, **key)]


def test_the_bold_cells_of_the_main_table_are_the_papers():
    paper = cases.paper("main")
    bold = paper.cells.filter("bold").select("backbone", "dataset", "metric", "method")
    assert set(bold.rows()) == PAPER_BOLD
    assert paper.tex.count(r"\mathbf") == len(PAPER_BOLD)


def test_labels_beside_several_rows():
    paper = cases.paper("reliability")
    backbone, places = [label(line) for line in body(paper)], [label(line, 1) for line in body(paper)]
    qwen, medgemma = (rf"\multirow{{4}}{{*}}{{{name}}}" for name in ("Qwen3VL-2B", "MedGemma1.5-4B"))
    assert backbone == [qwen, "", "", "", medgemma, "", "", ""] * 2
    assert places == [r"\multirow{2}{*}{SLAKE-test}", "", r"\multirow{2}{*}{VQA-RAD}", ""] * 4


def test_a_line_of_two_rules_for_a_threshold():
    rows = [
        *over_seeds("psr", "threshold_at_risk_05", [0.8, 0.9, 1.0]),
        *over_seeds("psr", "coverage_at_risk_05", [0.5] * 3),
        *over_seeds("psr", "kept_risk_at_risk_05", [0.07, 0.08, 0.09]),
        *over_seeds("psr", "coverage_at_risk_05", [0.25] * 3, dataset="ood6"),
        *over_seeds("psr", "kept_risk_at_risk_05", [None] * 3, dataset="ood6", reason="pmc: nothing is kept"),
        *over_seeds("psr", "certified_threshold_at_risk_05", [0.9, 0.95, 1.0]),
        *over_seeds("psr", "certified_coverage_at_risk_05", [None] * 3, reason="too few images"),
        *over_seeds("psr", "certified_kept_risk_at_risk_05", [0.04] * 3),
    ]
    table = build("thresholds", *rows, methods=[method("psr", label="PSR")])
    upper = [r"$.900_{\pm.100}$", r"$.500_{\pm.000}$", r"$.080_{\pm.010}$", r"$.250_{\pm.000}$", "---"]
    lower = [r"$.950_{\pm.050}$", "---", r"$.040_{\pm.000}$", "---", "---"]
    cells = [rf"\shortstack{{{top}\\[-2pt]{bottom}}}" for top, bottom in zip(upper, lower, strict=True)]
    assert body(table) == [rf"\raisebox{{1.1ex}}[0pt]{{PSR}} & {' & '.join(cells)} \\"]
    assert r" & \multicolumn{5}{c}{Target risk 5\%} \\" in table.tex.splitlines()


def test_a_line_of_a_family_and_a_data_set_without_families():
    rows = [
        *over_seeds("rlvr", "brier", [0.3] * 3, subset="family:body_part", n=12),
        *over_seeds("psr", "brier", [0.1, 0.2, 0.3], subset="family:body_part", n=12),
    ]
    assert body(build("by_family", *rows, methods=TWO[:2])) == [
        r"\multirow{2}{*}{body\_part} & \multirow{2}{*}{12} & RLVR & --- & --- & --- & $.300_{\pm.000}$ \\",
        r" &  & PSR & --- & --- & --- & $\mathbf{.200}_{\pm.100}$ \\",
    ]
    assert "records no families" in build("by_family").tex


def test_ties_at_the_printed_precision_are_all_bold_and_nulls_never():
    table = build("main", *of_all("auroc", {"rlvr": [0.8001] * 3, "psr": [0.7999] * 3, "question_prior": [0.9] * 3}))
    assert [cell(table, name, "auroc")["bold"] for name in ("rlvr", "psr", "question_prior")] == [True, True, False]


@pytest.mark.parametrize(
    ("metric", "values", "evidence", "best"),
    [
        # Of ranks, 29 images with right answers in one seed are too few, and as many with wrong ones; 30 are enough.
        ("auroc", [0.8, 0.9], {"images_with_right": [30.0, 29.0, 40.0]}, "psr"),
        ("auroc", [0.8, 0.9], {"images_with_wrong": [30.0, 29.0, 40.0]}, "psr"),
        ("auroc", [0.8, 0.9], {"images_with_right": [30.0] * 3, "images_with_wrong": [30.0] * 3}, "rlvr"),
        # A Brier score is easy for an actor that is always wrong, and says something of one that is seldom wrong.
        ("brier", [0.2, 0.1], {"images_with_right": [29.0] * 3}, "psr"),
        ("brier", [0.2, 0.1], {"images_with_wrong": [29.0] * 3}, "rlvr"),
        # 1 - .1 of the answers may have no confidence.
        ("brier", [0.2, 0.1], {"imputed_share": [0.91, 0.5, 0.5]}, "psr"),
        ("brier", [0.2, 0.1], {"imputed_share": [0.9] * 3}, "rlvr"),
        ("strict_ccg_auc", [0.6, 0.9], {"imputed_share": [0.91] * 3}, "psr"),
        # Without a better founded value, all are compared. The worst value is not bold either way.
        ("auroc", [None, 0.9], {"images_with_right": [29.0] * 3}, "rlvr"),
        ("auroc", [0.8, 0.7], {"images_with_right": [29.0] * 3}, "psr"),
    ],
)
def test_a_value_that_rests_on_next_to_no_answers_is_never_bold_beside_others(metric, values, evidence, best):
    name = "main" if metric != "brier" else "cascade"
    rows = of_all(metric, {"psr": [values[0]] * 3, "rlvr": [values[1]] * 3})
    for of, seeds in evidence.items():
        rows += over_seeds("rlvr", of, seeds)
    table = build(name, *rows)
    assert table.cells.filter("bold")["method"].to_list() == [best]
    is_passed_over = best == "psr" and values[1] != 0.7
    assert ("Never bold beside others: values of methods without a confidence in more than 90\\%" in table.tex) is (
        is_passed_over
    )


def test_a_mean_over_data_sets_is_passed_over_by_the_mean_share_of_imputed_confidences():
    # The mean of CCG-AUC is over other data sets than that of the share, which is the same actor's.
    rows = of_all("strict_ccg_auc", {"psr": [0.6] * 3, "rlvr": [0.9] * 3}, dataset="ood_ccg")
    assert cell(build("main", *rows), "rlvr", "strict_ccg_auc", "ood_ccg")["bold"]
    rows += over_seeds("rlvr", "imputed_share", [0.95] * 3, dataset="ood6")
    assert cell(build("main", *rows), "psr", "strict_ccg_auc", "ood_ccg")["bold"]


def test_a_shared_accuracy_is_printed_in_the_first_row_of_its_actor_and_dittoed_below():
    lines = body(cases.paper("main"))[:11]
    columns = [[label(line, k) for line in lines] for k in (1, 2, 6)]
    found = dict(zip(columns[0], columns[1], strict=True))
    assert [found.pop(name) for name in ("Base", "RLCR", "GRPO (RLVR)")] == [
        *("$.443$", r"$.608_{\pm.009}$", r"$.639_{\pm.009}$")
    ]
    dittoed = ("P(True)", "Self-prob.", "Prompt ens.", "SAPLMA", "BICR", "DualRead")
    assert {found[name] for name in dittoed} == set(columns[2][5:]) == {"''"}
    assert "the same answers, and so the same accuracy, as in the row above" in cases.paper("main").tex


def test_what_methods_of_an_actor_share_is_printed_once_and_they_must_agree():
    same = {method.name: [0.3, 0.4, 0.5] for method in TWO}
    table = build("controls", *of_all("shuffled_accuracy", same), *of_all("shuffled_accuracy_drop", same))
    of_actor = [line.split(" & ")[4:6] for line in body(table)]
    assert of_actor == [[r"$.400_{\pm.100}$"] * 2, ["''"] * 2, ["''"] * 2]
    assert len(table.cells) == 3 * 5 + 2
    assert not table.cells["bold"].any()
    with pytest.raises(ArtifactError, match=r"shuffled_accuracy of psr on slake is 0.5, of rlvr 0.4"):
        build("controls", *of_all("shuffled_accuracy", {**same, "psr": [0.4, 0.5, 0.6]}))


def test_an_actor_whose_methods_are_not_adjacent_is_printed_again():
    methods = [method("rlvr"), method("base", TOKEN, "base"), method("psr")]
    rows = [*over_seeds("rlvr", "accuracy", [0.5] * 3), *over_seeds("psr", "accuracy", [0.5] * 3),
            estimate("base", "accuracy", 0.4, seed=0, actor="base")]  # fmt: skip
    table = build("main", *rows, methods=methods)
    printed = table.cells.filter((pl.col("metric") == "accuracy") & (pl.col("dataset") == "slake"))["printed"]
    assert printed.to_list() == [".500±.000", ".400", ".500±.000"]


def test_an_undefined_value_is_a_dash_with_its_reason():
    rows = over_seeds("psr", "auroc", [0.7, None, 0.9], reason="one class only")
    rows += over_seeds("psr", "natural_ccg_auc", [None] * 3, dataset="ood_ccg", reason="the study has no OOD data sets")
    table = build("main", *rows)
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
    table = build("main", *rows)
    assert cell(table, "psr", "strict_ccg_auc")["printed"] == ".700±.000†sd"
    assert r"$\mathbf{.700}_{\pm.000}{}^{\dagger\mathrm{sd}}$" in table.tex
    assert "have fewer than 30 distinct source images (s) or donor images (d)." in table.tex
    assert "Such samples tell a CCG-AUC of .735 from .500 (power .8)." in table.tex
    assert r"Of the pairs behind a value, up to 35\% are ties." in table.tex


@pytest.mark.parametrize("name", ["fixed_prefix", "strict_same_answer", "shuffled", "strict"])
def test_a_control_on_few_images_has_a_dagger(name):
    values = [
        *over_seeds("psr", f"{name}_ccg_auc", [0.7] * 3),
        *over_seeds("psr", f"{name}_few_donors", [0.0, 1.0, 0.0]),
    ]
    table = build("controls", *values)
    assert cell(table, "psr", f"{name}_ccg_auc")["printed"] == ".700±.000†d"
    assert table.cells["printed"].str.contains("†").sum() == 1
    assert "Underpowered: the decisive pairs have fewer than 30 distinct donor images (d)." in table.tex


def test_an_ece_that_chance_explains_has_a_circle_which_the_caption_explains():
    rows = [*over_seeds("psr", "ece15", [0.1] * 3, dataset="pmc_vqa")]
    rows += over_seeds("psr", "ece15_noise_floor", [0.12] * 3, dataset="pmc_vqa")
    table = build("calib", *rows, datasets=tuple(datasets("pmc_vqa")))
    assert cell(table, "psr", "ece15", "pmc_vqa")["printed"] == ".100±.000°"
    assert r"$\mathbf{.100}_{\pm.000}{}^{\circ}$" in table.tex
    for text in (table.tex, table.html):
        assert text.count("An ECE that calibrated confidences reach by chance") == 1
    rows[3:] = over_seeds("psr", "ece15_noise_floor", [0.12, 0.05, 0.12], dataset="pmc_vqa")  # one seed is above it
    table = build("calib", *rows, datasets=tuple(datasets("pmc_vqa")))
    assert cell(table, "psr", "ece15", "pmc_vqa")["printed"] == ".100±.000"


def test_a_study_without_ood_data_sets_shows_the_in_distribution_one_in_their_place():
    table = build("ccg_ood", *over_seeds("psr", "strict_ccg_auc", [0.7] * 3), methods=[method("psr")])
    assert body(table) == [r"PSR & --- & $\mathbf{.700}_{\pm.000}$ \\"]
    assert r"\multicolumn{2}{c}{SLAKE-test}" in table.tex


def test_sizes_of_the_data_sets_are_in_the_head():
    rows = [*over_seeds("psr", "accuracy", [0.5] * 3, n=1061),
            *over_seeds("psr", "accuracy", [0.5] * 3, n=4584, dataset="ood6")]  # fmt: skip
    assert "SLAKE-test ($n=1061$)" in build("main", *rows).tex
    assert "OOD averaged ($n=4584$)" in build("main", *rows).tex


def test_components_follow_from_the_readers_of_a_method_not_from_its_name():
    mine = method("mine", label="Mine", readers=["combined", "psr", "p_visual"])
    assert r"Mine & $\surd$ & $\times$ & $\surd$ & --- & --- & --- \\" in build("cascade", methods=[mine]).tex


def test_exactly_one_data_set_is_in_distribution():
    for names in ("", "ab"):
        with pytest.raises(ConfigError, match="expected exactly one"):
            layout(TWO, datasets=[LabeledDataset(name=name, label=name, id=True) for name in names])


def test_robustness_marks_a_ccg_auc_on_few_images_and_compares_no_condition_with_itself():
    values = {"rlvr": [0.5] * 3, "psr": [0.9] * 3}
    at = {"dataset": "slake", "subset": "condition:no_image"}
    rows = of_all("ccg_auc", values, **at) + of_all("ccg_few_donors", {"psr": [0.0, 1.0, 0.0]}, **at)
    rows += of_all("brier", values, **at) + of_all("confidence_drop", values, **at)
    rows += of_all("brier", values, dataset="slake", subset="condition:original")
    table = build("robustness", *rows)
    # .9 would be the best; on few donor images in one run, it is neither bold nor beside others.
    few = cell(table, "psr", "ccg_auc")
    assert (few["printed"], few["bold"]) == (".900±.000†d", False)
    lines = [line for line in body(table) if "---" not in label(line)]
    assert any(r"$.900_{\pm.000}{}^{\dagger\mathrm{d}}$" in line for line in lines)
    of_original = table.cells.filter(subset="condition:original")
    assert set(of_original["metric"]) & {"accuracy_drop", "confidence_drop", "ccg_auc"} == set()
    assert set(of_original["metric"]) >= {"brier"}
