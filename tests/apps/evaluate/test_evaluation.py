"""`dualread.evaluate`: comparisons, thresholds, other columns, and tables in memory."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dualread
from dualread.apps.evaluate.printed import everything
from dualread.apps.evaluate.report import evaluation_report
from dualread.errors import DataError
from dualread.evaluation.metrics import certified_threshold, threshold
from tests.apps.evaluate.tables import ANSWERS


def answers(n_images=40, methods=("a", "b", "c"), seed=0, **columns):
    """Three questions per image; the methods differ in how well their confidence follows correctness."""
    generator = np.random.default_rng(seed)
    correct = generator.random(3 * n_images) < 0.8
    frames = [
        pl.DataFrame(
            {
                "method": name,
                "sample_id": [f"q{i}" for i in range(len(correct))],
                "image_id": [f"i{i // 3}" for i in range(len(correct))],
                "correct": correct,
                "confidence": np.clip(0.3 + 0.4 * correct + generator.normal(0, 0.1 * (k + 1), len(correct)), 0, 1),
            }
        )
        for k, name in enumerate(methods)
    ]
    return pl.concat(frames).with_columns(**columns)


def values(frame, column="estimate"):
    return {row["metric"]: row[column] for row in frame.filter(subset="all").iter_rows(named=True)}


def test_a_difference_is_that_of_the_estimates_and_of_the_replicates():
    found = dualread.evaluate(answers(), compare=["a", "b", "c"], replicates=200)
    metrics = {name: values(found.metrics.filter(method=name)) for name in "abc"}
    assert found.differences.select("method", "baseline").unique().sort("baseline").rows() == [("a", "b"), ("a", "c")]
    for row in found.differences.filter(pl.col("reason").is_null()).iter_rows(named=True):
        expected = metrics["a"][row["metric"]] - metrics[row["baseline"]][row["metric"]]
        assert row["estimate"] == pytest.approx(expected, abs=1e-15)
        assert row["low"] <= row["high"]
        assert row["p"] <= row["p_holm"] <= 2 * row["p"]  # two baselines
    accuracy = found.differences.filter(metric="accuracy", baseline="b").row(0, named=True)
    assert (accuracy["estimate"], accuracy["low"], accuracy["p"]) == (0.0, 0.0, 1.0)  # the same answers
    auroc = found.differences.filter(metric="auroc", baseline="c").row(0, named=True)
    assert (auroc["estimate"] > 0, auroc["p"] < 0.05) == (True, True)


def test_a_comparison_is_on_the_questions_that_all_methods_answer():
    """A log cannot be edited by hand; the others are counted (PROTOCOL: nothing is dropped without a count)."""
    table = answers()  # 120 questions, of which c answers 118
    found = dualread.evaluate(table[:-2], compare=["a", "c"], replicates=50)
    both = table.filter(~pl.col("sample_id").is_in(["q118", "q119"]))
    assert_frame_equal(found.differences, dualread.evaluate(both, compare=["a", "c"], replicates=50).differences)
    of_b = dualread.evaluate(table, replicates=50).metrics.filter(method="b")
    assert_frame_equal(found.metrics.filter(method="b"), of_b)
    (said,) = [one for one in found.warnings if "differences" in one]
    assert "the 118 of 120 questions" in said
    assert "c: 2; left out: q118, q119" in said
    for n, more in ((5, False), (6, True)):
        (said,) = dualread.evaluate(table[:-n], compare=["a", "c"], replicates=0).warnings
        assert said.endswith("q119") != more
        assert said.endswith(", ...") == more
    others = dualread.evaluate(table, compare="a", replicates=0).differences["baseline"]
    assert others.unique(maintain_order=True).to_list() == ["b", "c"]
    elsewhere = pl.when(method="c", sample_id="q119").then(pl.lit("x")).otherwise("image_id").alias("image_id")
    apart = table.with_columns(
        pl.when(method="c").then("x" + pl.col("sample_id")).otherwise("sample_id").alias("sample_id")
    )
    for wrong, said in ((table.with_columns(elsewhere), "'q119' is about image"), (apart, "a: 120, c: 120")):
        with pytest.raises(DataError, match=said):
            dualread.evaluate(wrong, compare=["a", "c"], replicates=40)


def test_thresholds_are_chosen_on_calibration_and_judged_on_the_predictions():
    chosen_on, judged = answers(600, ("a", "b"), seed=1), answers(50, ("a", "b"), seed=2)
    found = dualread.evaluate(judged, calibration=chosen_on, target_risk=0.1, replicates=0).thresholds
    assert found.select("method", "rule").rows() == [(m, r) for m in "ab" for r in ("empirical", "certified")]
    for row in found.iter_rows(named=True):
        mine, theirs = (table.filter(method=row["method"]) for table in (chosen_on, judged))
        columns = [mine[name].to_numpy() for name in ("confidence", "correct", "image_id")]
        rules = {"empirical": threshold(*columns[:2], target_risk=0.1)}
        rules["certified"] = certified_threshold(*columns, target_risk=0.1)
        kept = theirs.filter(pl.col("confidence") >= rules[row["rule"]])
        assert row["threshold"] == rules[row["rule"]]
        assert row["coverage"] == len(kept) / len(theirs)
        assert row["risk"] == pytest.approx(1 - kept["correct"].mean(), abs=1e-15)
    found = dualread.evaluate(answers(5), calibration=answers(5, seed=1), target_risk=[0.1], replicates=0).thresholds
    certified = found.filter(rule="certified", method="a").row(0, named=True)
    assert certified["threshold"] is certified["coverage"] is certified["risk"] is None
    assert "too few images (5), even if all 15 answers were correct" in certified["reason"]


def test_delta_is_shared_among_the_thresholds_that_are_chosen_from():
    chosen_on, judged = answers(600, ("a", "b"), seed=1), answers(50, ("a", "b"), seed=2)

    def certified(**options):
        found = dualread.evaluate(judged, calibration=chosen_on, target_risk=0.1, replicates=0, **options).thresholds
        return found.filter(rule="certified")

    values = ["threshold", "coverage", "risk", "reason"]
    shared = certified(delta=0.1, share_delta=2)
    assert shared.select(values).equals(certified(delta=0.05).select(values))
    assert shared.select("delta", "share_delta").unique().rows() == [(0.1, 2)]


def test_a_known_largest_number_of_answers_per_image_is_a_condition_of_the_certified_threshold():
    chosen_on, judged = answers(600, ("a",), seed=1), answers(50, ("a",), seed=2)  # 3 answers per image
    options = {"calibration": chosen_on, "target_risk": 0.2, "replicates": 0}
    found = {
        most: dualread.evaluate(judged, max_per_image=most, **options).thresholds.filter(rule="certified")
        for most in (None, 3, 9)
    }
    assert found[3]["threshold"].equals(found[None]["threshold"])
    assert not found[9]["threshold"].equals(found[3]["threshold"])
    assert [found[most]["max_per_image"][0] for most in (None, 3, 9)] == [None, 3, 9]
    assert set(found[None]["calibration_max_per_image"]) == {3}
    with pytest.raises(DataError, match=r"^calibration: image_id .* has 3 answers, and --max-per-image says .* 2\."):
        dualread.evaluate(judged.filter(pl.col("image_id").is_first_distinct()), max_per_image=2, **options)
    larger = judged.with_columns(image_id=pl.lit("one"))
    with pytest.raises(DataError, match=r"^predictions: image_id 'one' has 150 answers, and --max-per-image says"):
        dualread.evaluate(larger, max_per_image=9, **options)
    said = dualread.evaluate(larger, **options).warnings
    assert any("image_id 'one' of predictions has 150 answers, more than any of calibration (3)" in one for one in said)
    assert not any("more than any" in one for one in dualread.evaluate(judged, **options).warnings)


def test_a_reason_is_in_the_unit_of_the_answers_that_choose():
    judged, chosen_on = answers(30, ("a",)), answers(1, ("a",), seed=1).drop("image_id")
    found = dualread.evaluate(judged, calibration=chosen_on, target_risk=0.1, replicates=0).thresholds
    assert "too few answers (" in found.filter(rule="certified")["reason"][0]


def test_each_data_set_has_its_own_calibration_where_there_are_several():
    two, judged = (
        pl.concat([answers(30, ("a",), seed=seed + k, dataset=pl.lit(name)) for k, name in enumerate(("x", "y"))])
        for seed in (0, 2)
    )
    found = dualread.evaluate(judged, calibration=two, target_risk=0.1, replicates=0).thresholds
    own = {
        name: threshold(*(two.filter(dataset=name)[c].to_numpy() for c in ("confidence", "correct")), target_risk=0.1)
        for name in ("x", "y")
    }
    assert dict(found.filter(rule="empirical").select("dataset", "threshold").rows()) == own
    other = two.with_columns(pl.col("dataset").replace({"x": "z"}))
    with pytest.raises(DataError, match=r"no answers to 'x' to choose a threshold\. Found data sets: y, z"):
        dualread.evaluate(judged, calibration=other, target_risk=0.1, replicates=0)


@pytest.mark.parametrize(
    "changed",
    [
        lambda table: table,
        lambda table: table.sample(fraction=1.0, shuffle=True, seed=3),
        lambda table: table.with_columns(sample_id="v" + pl.col("sample_id")),
        lambda table: table.drop("sample_id"),
    ],
    ids=["the same", "other order", "other names", "no names"],
)
def test_answers_cannot_choose_a_threshold_and_judge_it(changed, tmp_path):
    answers().write_csv(tmp_path / "test.csv")
    changed(answers()).write_csv(tmp_path / "copy.csv")
    with pytest.raises(DataError, match=r"copy\.csv: holds the answers of .*test\.csv"):
        dualread.evaluate(tmp_path / "test.csv", calibration=tmp_path / "copy.csv", target_risk=0.1, replicates=0)
    one = answers(methods=("a",))
    with pytest.raises(DataError, match="calibration: holds the answers"):  # under another name of the method
        dualread.evaluate(changed(one).drop("method"), calibration=one, target_risk=0.1, replicates=0)


def test_questions_and_images_that_choose_a_threshold_and_judge_it_are_counted():
    judged, same = answers(seed=1), answers(seed=2)

    def said(calibration):
        return dualread.evaluate(judged, calibration=calibration, target_risk=0.1, replicates=0).warnings

    (warning,) = said(same[:-30])  # 120 questions of 3 methods; the last method lacks 30, the others have them
    assert warning.startswith(
        "warning: 120 of 120 questions of predictions are in calibration too (equal sample_id, im"
    )
    (warning,) = said(same.with_columns(pl.when(image_id="i0").then("image_id").otherwise(pl.lit("other"))))
    assert warning.startswith("warning: 3 of 120 questions")
    assert said(same.with_columns(image_id="v" + pl.col("image_id"))) == []
    asked = same.drop("sample_id").with_columns(question=pl.lit("Is it?"))  # questions have a text in place of a name
    named = dualread.evaluate(
        judged.with_columns(question=pl.lit("is it")), calibration=asked, target_risk=0.1, replicates=0
    )
    assert "40 of 40 questions of predictions are in calibration too (equal image_id, question)" in named.warnings[0]
    nameless = dualread.evaluate(judged, calibration=same.drop("sample_id"), target_risk=0.1, replicates=0)
    (warning,) = nameless.warnings  # which questions these are is not known, but their images are
    assert warning.startswith("warning: 40 of 40 images of predictions are in calibration too")
    assert nameless.thresholds.filter(rule="certified")["threshold"].to_list() == [None] * 3


def test_raw_scores_have_metrics_of_ranks_only():
    logits, chosen_on = (
        answers(methods=("a",), seed=seed).select(pl.exclude("confidence"), score=20 * pl.col("confidence") - 10)
        for seed in (0, 1)
    )
    found = dualread.evaluate(logits, calibration=chosen_on, target_risk=0.1, replicates=50)
    raw, own = values(found.metrics), values(dualread.evaluate(answers(methods=("a",)), replicates=50).metrics)
    ranks = {"accuracy", "auroc", "aurc"}
    assert {name: raw[name] for name in ranks} == {name: own[name] for name in ranks}
    for name in ("ece15", "brier", "hce90", "calibration_slope", "calibration_in_the_large"):
        row = found.metrics.filter(metric=name, subset="all").row(0, named=True)
        assert (row["estimate"], row["low"]) == (None, None)
        assert "needs probabilities" in row["reason"]
    assert found.thresholds["threshold"].to_list() == [None, None]


@pytest.mark.parametrize(
    ("right", "wrong"), [("image_id", "image-id"), ("image_id", "Image_ID"), ("sample_id", "sampleid")]
)
def test_a_misspelled_column_is_refused_and_others_are_listed(right, wrong):
    table = pl.read_csv(ANSWERS.encode())
    with pytest.raises(DataError, match=rf"'{wrong}' would be ignored\. Did you mean '{right}'\?"):
        dualread.evaluate(table.rename({right: wrong}), replicates=0)
    found = dualread.evaluate(table.with_columns(radiologist=pl.lit("x"), questions=pl.lit("y")), replicates=0)
    assert found.unused == ["predictions: 2 columns not used: radiologist, questions"]


def paired_tables(n, *, donors=None, n_methods=2):
    """Return n questions, one per image: method m0 prefers every own image, the others no image."""
    methods = {"sample_id": [f"q{k:02d}" for k in range(n)] * n_methods}
    methods["method"] = [f"m{m}" for m in range(n_methods) for _ in range(n)]
    others = [0.5] * n * (n_methods - 1)
    images = {"image_id": [f"i{k:02d}" for k in range(n)] * n_methods}
    answers = {**methods, **images, "confidence": [0.9] * n + others, "correct": [1] * n * n_methods}
    donors = {"donor_image_id": donors or [f"d{k:02d}" for k in range(n)] * n_methods}
    return answers, {**methods, **donors, "donor_confidence": [0.1] * n + others, "donor_correct": [0] * n * n_methods}


def test_no_difference_has_a_p_value_that_its_pairs_cannot_give():
    found = dualread.evaluate(*paired_tables(4), compare=["m0", "m1"], replicates=10_000)
    row = found.differences.filter(metric="natural_ccg_auc").row(0, named=True)
    # Four pairs on images of their own, all of which favour m0: the exact sign test has 2 x .5**4.
    assert (row["estimate"], row["p"], row["p_at_most"], row["short"]) == (0.5, 0.125, False, "source and donor")
    printed = [line for line in everything(evaluation_report(found)) if "m0 - m1" in line]
    of_ccg = next(line for line in printed if line.startswith("natural_ccg_auc"))
    assert of_ccg.endswith("0.125     0.125  underpowered: fewer than 30 source and donor images")
    # Methods with other donors are compared on the 12 sources that they share; each carries a difference.
    donors = [f"d{k:02d}" for k in range(12)] + [f"d{k:02d}" if k < 6 else f"e{k:02d}" for k in range(12)]
    found = dualread.evaluate(*paired_tables(12, donors=donors), compare=["m0", "m1"], replicates=0).differences
    row = found.filter(metric="natural_ccg_auc").row(0, named=True)
    assert (row["estimate"], row["p"]) == (0.5, 2.0 ** (1 - 12))


def test_the_smallest_p_value_of_the_resamples_is_printed_as_a_limit():
    n = 80
    correct = np.random.default_rng(0).random(n) < 0.5
    table = {
        **{"sample_id": [f"q{k}" for k in range(n)] * 2, "image_id": [f"i{k}" for k in range(n)] * 2},
        **{"method": ["good"] * n + ["bad"] * n, "correct": [*correct.astype(int)] * 2},
        "confidence": [*np.where(correct, 0.9, 0.1), *np.where(correct, 0.1, 0.9)],
    }
    found = dualread.evaluate(table, compare=["good", "bad"], replicates=400)
    row = found.differences.filter(metric="brier").row(0, named=True)
    assert (row["p"], row["p_at_most"], row["p_holm_at_most"]) == (2 / 401, True, True)
    lines = list(everything(evaluation_report(found)))
    assert any(line.startswith("brier") and line.split()[-2:] == ["<=0.00499", "<=0.00499"] for line in lines)


@pytest.mark.parametrize(("replicates", "warned"), [(118, True), (119, True), (120, False), (0, False)])
def test_too_few_resamples_for_holm_are_told(replicates, warned):
    found = dualread.evaluate(*paired_tables(4, n_methods=4), compare=["m0"], replicates=replicates)
    # Three baselines: 3 x 2 / (B + 1) is below .05 from B = 120 on.
    said = [line for line in found.warnings if "resamples" in line]
    assert bool(said) is warned
    assert not said or said[0].endswith("Use --replicates 120 or more.")
