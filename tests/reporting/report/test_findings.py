"""The findings at the top of the report follow from the tests of the study."""

import pytest

from dualread.artifacts.tables import from_rows
from dualread.declared.columns import CONTRASTS
from dualread.reporting.report.findings import find
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
LAYOUT = layout(METHODS, datasets=datasets("vqa_rad")).wire()
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


def details(result):
    """Return (backbone, all its sentences)."""
    return [(backbone, " ".join(sentences)) for backbone, sentences in result.details]


def on(backbones):
    return {**LAYOUT, "backbones": LAYOUT["backbones"][:backbones]}


def test_a_clear_winner_is_called_better_than_each_bar_on_every_backbone():
    result = found(against_all() + against_all(backbone=MEDGEMMA))
    assert result.headline == (
        "On SLAKE-test, DualRead separates correct answers from incorrect ones significantly better than the stated "
        "confidence (GRPO) and both nulls (Question prior and Answer prior), on Qwen3VL-2B and MedGemma1.5-4B."
    )
    (backbone, text), (other, _) = details(result)
    assert (backbone, other) == ("Qwen3VL-2B", "MedGemma1.5-4B")
    assert "DualRead: AUROC .800 [.750, .850] (mean over 3 seeds; 384 questions on 48 images)." in text
    difference = "(+.100 [+.050, +.150], p = .001)"
    bars = f"GRPO {difference}, Question prior {difference} and Answer prior {difference}"
    assert f"Significantly above {bars}." in text
    assert "Not " not in text
    # RLCR is what another actor states: no bar, but a method like SAPLMA
    assert "Of 2 further methods, significantly better than DualRead: none; significantly worse: 2;" in text


def test_a_difference_that_other_seeds_may_not_have_is_not_significant():
    seeds = {"p_retrained": 0.03, "p_holm_retrained": 0.06}
    rows = [row(estimate=0.8), *(row(m.name, 0.1, 0.001, p_holm_at_most=True, **seeds) for m in METHODS[:-1])]
    ((_, text),) = details(found(rows, on(1)))
    assert "Not distinguishable from GRPO (+.100 [+.050, +.150], p ≤ .001; retrained, p = .060)" in text


def test_nothing_significant_is_called_indistinguishable_and_no_method_better():
    result = found(against_all(p=0.05) + against_all(p=0.7, backbone=MEDGEMMA))  # .05 is not below .05
    assert "neither significantly better nor worse than the stated confidence (GRPO)" in result.headline
    assert "cannot tell them apart" in result.headline
    for _, text in details(result):
        assert "Not distinguishable from GRPO" in text
        assert "Significantly" not in text


def test_another_adjusted_p_value_on_one_backbone_changes_only_the_sentence_on_it():
    result = found(against_all() + against_all(p=0.2, backbone=MEDGEMMA))
    assert result.headline.endswith(" on Qwen3VL-2B, but not on MedGemma1.5-4B.")


def test_a_bar_that_is_not_outperformed_is_named():
    rows = [r if r["baseline"] != "answer" else row("answer", 0.012, 0.41) for r in against_all()]
    result = found(rows, on(1))
    assert (
        "DualRead does not significantly outperform all of these: the stated confidence (GRPO) and both nulls"
        in result.headline
    )
    ((_, text),) = details(result)
    assert "Not distinguishable from Answer prior (+.012 [-.038, +.062], p = .410)." in text
    assert "Significantly above GRPO" in text


def test_a_method_below_the_bars_and_below_another_method_is_said_to_be_below():
    result = found(against_all(estimate=-0.1), on(1))
    ((_, text),) = details(result)
    assert "does not significantly outperform" in result.headline
    assert "Significantly below GRPO (-.100 [-.150, -.050], p = .001)" in text
    assert "significantly better than DualRead: RLCR and SAPLMA; significantly worse: 0" in text


def test_undefined_values_are_no_verdict_and_keep_their_reason():
    result = found([row(estimate=None), *(row(name, None) for name in BARS)], on(1))
    assert "cannot be compared with the stated confidence (GRPO)" in result.headline
    ((_, text),) = details(result)
    assert "AUROC is undefined (seed 17: one class only)." in text
    assert "No value or p-value for the difference from GRPO (seed 17: one class only)" in text


def test_an_undefined_difference_does_not_count_as_outperformed():
    rows = [r if r["baseline"] != "answer" else row("answer", None) for r in against_all()]
    result = found(rows, on(1))
    assert "does not significantly outperform" in result.headline
    assert "No value or p-value for the difference from Answer prior" in details(result)[0][1]


def test_a_single_seed_is_said_to_be_one():
    ((_, text),) = details(found(against_all(n_seeds=1), on(1)))
    assert "(one run, so the variation between training runs is unknown; 384 questions on 48 images)" in text
    assert "seeds" not in text


def test_a_missing_backbone_is_named_and_nothing_is_said_about_it():
    result = found(against_all())
    assert result.headline.endswith("on Qwen3VL-2B. For MedGemma1.5-4B no difference has a p-value.")
    assert details(result)[1] == ("MedGemma1.5-4B", "The study has no results of DualRead here.")


def test_a_study_without_nulls_says_what_that_leaves_open():
    methods = [m for m in METHODS if m.group != "Null"]
    result = found([r for r in against_all() if r["baseline"] not in ("question", "answer")], layout(methods).wire())
    assert "better than the stated confidence (GRPO), on Qwen3VL-2B." in result.headline
    assert "The study has no null methods" in result.headline


def test_nulls_that_were_not_tested_do_not_count_as_outperformed():
    result = found([r for r in against_all() if r["baseline"] not in ("question", "answer")], on(1))
    assert "does not significantly outperform" in result.headline
    assert "Not tested against Question prior and Answer prior." in details(result)[0][1]


@pytest.mark.parametrize("contrasts", [None, [], [row(estimate=0.8)], [row("saplma")]])
def test_a_study_that_tests_nothing_against_the_bars_ranks_nothing(contrasts):
    result = find(None if contrasts is None else from_rows(contrasts, CONTRASTS), [LAYOUT])
    assert "tests no method against the confidence that its model states" in result.headline
    assert (result.details, result.reading) == ((), "")


def ccg(metric, estimate=0.6, p=0.001, **columns):
    own = row(estimate=estimate, metric=metric, **columns)
    return [own, *(row(name, 0.1, p, metric=metric, **columns) for name in ("question", "answer"))]


def test_ccg_above_both_nulls_is_evidence_and_otherwise_there_is_none():
    ((_, text),) = details(found(against_all() + ccg("natural_ccg_auc") + ccg("strict_ccg_auc", 0.51, 0.8), on(1)))
    natural, strict = text.partition("Natural CCG-AUC ")[2].split("Strict CCG-AUC ")
    assert natural.startswith(".600 [.550, .650], significantly above Question prior (+.100")
    assert "confidence falls with another image" in natural
    assert strict.startswith(".510 [.460, .560], not significantly above Question prior (+.100")
    assert "no evidence that confidence comes from the image" in strict


def test_underpowered_ccg_is_no_evidence_however_small_its_p_value():
    ((_, text),) = details(found(against_all() + ccg("natural_ccg_auc", short="donor"), on(1)))
    assert "Natural CCG-AUC is underpowered: the decisive pairs have fewer than 30 distinct donor images." in text
    assert "no evidence either way" in text
    assert ".600" not in text
    assert "confidence falls" not in text


def test_undefined_and_unmeasured_ccg_are_said_to_be_so():
    ((_, text),) = details(found([*against_all(), row(estimate=None, metric="strict_ccg_auc")], on(1)))
    assert "Strict CCG-AUC is undefined (seed 17: one class only)." in text
    ((_, text),) = details(found(against_all(), on(1)))
    assert "CCG-AUC was not measured" in text


def test_ccg_without_a_null_beside_it_shows_nothing_about_the_image():
    ((_, text),) = details(found([*against_all(), row(estimate=0.7, metric="strict_ccg_auc")], on(1)))
    assert "Strict CCG-AUC .700 [.650, .750]; not tested against a null" in text


def test_the_p_value_of_the_largest_family_decides_and_not_an_unadjusted_one():
    alone = [row(name, 0.1, 0.001, contrast=f"only_{name}") for name in BARS]
    result = found(against_all(p=0.3) + alone, on(1))
    assert "neither significantly better nor worse" in result.headline


def test_other_data_sets_and_splits_have_no_influence():
    elsewhere = against_all(dataset="ood6") + against_all(split="validation")
    assert found(against_all(p=0.5) + elsewhere, on(1)) == found(against_all(p=0.5), on(1))
