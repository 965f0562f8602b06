"""The findings at the top of the report follow from the tests of the study."""

import pytest

from dualread.artifacts.tables import from_rows
from dualread.reporting.report.findings import find
from dualread.schema.columns import CONTRASTS
from tests.reporting.tables.layouts import BACKBONES, HIDDEN, TOKEN, datasets, layout, method

QWEN, MEDGEMMA = (backbone.name for backbone in BACKBONES)
METHODS = [
    method("rlcr", TOKEN, "rlcr", label="RLCR", readers=["verbalized"]),
    method("rlvr", TOKEN, label="GRPO", readers=["verbalized"]),
    method("question", "Null", label="Question prior", readers=["question_prior"]),
    method("answer", "Null", label="Answer prior", readers=["question_answer_prior"]),
    method("saplma", HIDDEN, label="SAPLMA", readers=["saplma"]),
    method("dualread", HIDDEN, label="DualRead", readers=["dualread", "psr"]),
]
LAYOUT = layout(METHODS, datasets=datasets("vqa_rad")).to_spec()
BARS = ("rlvr", "question", "answer")


def row(baseline=None, estimate=0.1, p=0.001, *, metric="auroc", backbone=QWEN, **columns):
    """Return a difference between DualRead and `baseline`, or DualRead's own value."""
    is_own = baseline is None
    undefined = estimate is None
    return {
        "study": "s", "backbone": backbone, "contrast": None if is_own else "significance", "dataset": "slake",
        "split": "test", "metric": metric, "method": "dualread", "baseline": baseline, "estimate": estimate,
        "seed_std": None, "n_seeds": 3, "low": None if undefined else estimate - 0.05,
        "high": None if undefined else estimate + 0.05, "p": None if is_own or undefined else p / 2,
        "p_holm": None if is_own or undefined else p, "n": 384, "n_clusters": 48,
        "p_at_most": None if is_own or undefined else False, "p_holm_at_most": None if is_own or undefined else False,
        "n_undefined": None if undefined else 0, "short": None,
        "reason": "seed 17: one class only" if undefined else None, **columns,
    }  # fmt: skip


def against_all(p=0.001, estimate=0.1, **columns):
    """Return DualRead's AUROC and its differences from every other method."""
    return [row(estimate=0.8, **columns), *(row(m.name, estimate, p, **columns) for m in METHODS[:-1])]


def found(rows, shown=LAYOUT):
    return find(from_rows(rows, CONTRASTS), [shown])


def lines(result):
    """The cells of the one table after the measure, by (backbone, measure, what it is compared with)."""
    [grid] = result.grids
    rows = [tuple("—" if text is None else text for text in row) for row in grid.rows]
    return {row[:3]: row[3:] for row in rows}


def on(backbones):
    return {**LAYOUT, "backbones": LAYOUT["backbones"][:backbones]}


def own(rows, measure="AUROC"):
    return lines(found(rows, on(1)))["Qwen3VL-2B", measure, "—"]


def against(rows, name, measure="AUROC"):
    return lines(found(rows, on(1)))["Qwen3VL-2B", measure, name]


def test_a_clear_winner_is_above_each_bar_and_every_other_method():
    result = found(against_all() + against_all(backbone=MEDGEMMA))
    bars = "against the stated confidence GRPO, the null Question prior, the null Answer prior: significantly above 3."
    assert result.headline == [
        f"AUROC of DualRead on SLAKE-test, {backbone}, {bars}" for backbone in ("Qwen3VL-2B", "MedGemma1.5-4B")
    ]
    value = (".800 [.750, .850]", "—", "—", "mean over 3 seeds; questions: 384, images: 48")
    difference = ("+.100 [+.050, +.150]", ".001", "—", "significantly above")
    # RLCR is what another actor states: no bar, but a method like SAPLMA
    compared = ("GRPO (stated)", "Question prior (null)", "Answer prior (null)", "RLCR", "SAPLMA")
    nothing = ("—", "—", "—", "not measured: the study has no donor pairs here")
    assert lines(result) == {
        key: text
        for backbone in ("Qwen3VL-2B", "MedGemma1.5-4B")
        for key, text in {
            (backbone, "AUROC", "—"): value,
            **{(backbone, "AUROC", name): difference for name in compared},
            (backbone, "CCG-AUC", "—"): nothing,
        }.items()
    }


def test_a_difference_that_other_seeds_may_not_have_is_not_significant():
    seeds = {"p_retrained": 0.03, "p_holm_retrained": 0.06}
    rows = [row(estimate=0.8), *(row(m.name, 0.1, 0.001, p_holm_at_most=True, **seeds) for m in METHODS[:-1])]
    assert against(rows, "GRPO (stated)") == ("+.100 [+.050, +.150]", "≤.001", ".060", "not distinguishable")


@pytest.mark.parametrize(
    ("estimate", "p", "verdict"),
    [
        (0.1, 0.001, "significantly above"),
        (-0.1, 0.001, "significantly below"),
        (0.1, 0.05, "not distinguishable"),  # .05 is not below .05
        (None, 0.001, "no value or p-value: seed 17: one class only"),
    ],
)
def test_the_verdict_on_a_bar_is_counted_in_the_headline(estimate, p, verdict):
    rows = [r if r["baseline"] != "answer" else row("answer", estimate, p) for r in against_all()]
    assert against(rows, "Answer prior (null)")[-1] == verdict
    ((headline),) = found(rows, on(1)).headline
    short = verdict.partition(":")[0]
    counts = "significantly above 3." if estimate == 0.1 and p == 0.001 else f"significantly above 2, {short} 1."
    assert headline.endswith(counts)


def test_a_difference_on_few_images_is_not_significant():
    rows = [r if r["baseline"] != "answer" else row("answer", 0.1, 0.001, short="donor") for r in against_all()]
    assert against(rows, "Answer prior (null)")[-1] == "not distinguishable"


def test_another_adjusted_p_value_on_one_backbone_changes_only_the_sentence_on_it():
    result = found(against_all() + against_all(p=0.2, backbone=MEDGEMMA))
    assert [line.rpartition(": ")[2] for line in result.headline] == [
        "significantly above 3.",
        "not distinguishable 3.",
    ]


def test_an_undefined_value_keeps_its_reason():
    assert own([row(estimate=None), *(row(name, None) for name in BARS)]) == (
        *("undefined", "—", "—", "seed 17: one class only"),
    )


def test_a_single_seed_is_said_to_be_one():
    assert own(against_all(n_seeds=1))[-1].startswith("one run, so the variation between training runs is unknown;")


def test_a_missing_backbone_is_named_and_nothing_is_said_about_it():
    result = found(against_all())
    assert result.headline[1].endswith("MedGemma1.5-4B, against the stated confidence GRPO, the null Question prior, "
                                       "the null Answer prior: not tested 3.")  # fmt: skip
    assert lines(result)["MedGemma1.5-4B", "AUROC", "—"][-1] == "the study has no results of DualRead here"


def test_a_study_without_nulls_says_what_that_leaves_open():
    rows = [r for r in against_all() if r["baseline"] not in ("question", "answer")]
    result = found(rows, layout([m for m in METHODS if m.group != "Null"]).to_spec())
    assert result.headline[0].endswith("against the stated confidence GRPO: significantly above 1.")
    assert "The study has no null methods" in result.headline[-1]


def test_nulls_that_were_not_tested_do_not_count_as_outperformed():
    rows = [r for r in against_all() if r["baseline"] not in ("question", "answer")]
    assert found(rows, on(1)).headline[0].endswith(": significantly above 1, not tested 2.")
    assert against(rows, "Answer prior (null)") == ("—", "—", "—", "not tested")


@pytest.mark.parametrize("contrasts", [None, [], [row(estimate=0.8)], [row("saplma")]])
def test_a_study_that_tests_nothing_against_the_bars_ranks_nothing(contrasts):
    result = find(None if contrasts is None else from_rows(contrasts, CONTRASTS), [LAYOUT])
    assert "tests no method against the confidence that its model states" in result.headline[0]
    assert (result.grids, result.reading) == ((), "")


def ccg(metric, estimate=0.6, p=0.001, **columns):
    own = row(estimate=estimate, metric=metric, **columns)
    return [own, *(row(name, 0.1, p, metric=metric, **columns) for name in ("question", "answer"))]


def test_ccg_is_compared_with_the_nulls_alone():
    rows = against_all() + ccg("natural_ccg_auc") + ccg("strict_ccg_auc", 0.51, 0.8)
    assert own(rows, "Natural CCG-AUC")[0] == ".600 [.550, .650]"
    names = {key[1:]: cells[-1] for key, cells in lines(found(rows, on(1))).items() if key[1] != "AUROC"}
    assert {key: verdict for key, verdict in names.items() if key[1] != "—"} == {
        **{("Natural CCG-AUC", f"{name} prior (null)"): "significantly above" for name in ("Question", "Answer")},
        **{("Strict CCG-AUC", f"{name} prior (null)"): "not distinguishable" for name in ("Question", "Answer")},
    }
    assert "Otherwise there is no evidence that confidence comes from the image" in found(rows).reading


def test_underpowered_ccg_is_no_evidence_however_small_its_p_value():
    rows = against_all() + ccg("natural_ccg_auc", short="donor")
    said = "fewer than 30 distinct donor images: no evidence either way"
    assert own(rows, "Natural CCG-AUC") == ("underpowered", "—", "—", said)
    assert [key[2] for key in lines(found(rows, on(1))) if key[1] == "Natural CCG-AUC"] == ["—"]


def test_undefined_ccg_is_said_to_be_so():
    rows = [*against_all(), row(estimate=None, metric="strict_ccg_auc")]
    assert own(rows, "Strict CCG-AUC") == ("undefined", "—", "—", "seed 17: one class only")


def test_the_p_value_of_the_largest_family_decides_and_not_an_unadjusted_one():
    alone = [row(name, 0.1, 0.001, contrast=f"only_{name}") for name in BARS]
    assert found(against_all(p=0.3) + alone, on(1)).headline[0].endswith(": not distinguishable 3.")


def test_other_data_sets_and_splits_have_no_influence():
    elsewhere = against_all(dataset="ood6") + against_all(split="validation")
    assert found(against_all(p=0.5) + elsewhere, on(1)) == found(against_all(p=0.5), on(1))
