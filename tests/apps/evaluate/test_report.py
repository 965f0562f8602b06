import math
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualread.apps.evaluate import files
from dualread.apps.evaluate.evaluation import evaluate as evaluate_tables
from dualread.apps.evaluate.printed import everything, number, summary
from dualread.apps.evaluate.report import evaluation_report
from dualread.evaluation import explained
from dualread.evaluation.answer_metrics import WITH_PERCENTILES
from dualread.evaluation.statistics.proportion import share_interval
from tests import golden
from tests.apps.evaluate.tables import ANSWERS, MORE_ANSWERS, MORE_PAIRS, PAIRS, columns, without, write
from tests.drawn import examples
from tests.evaluation.metrics import literal


def found_in(folder, answers=ANSWERS, pairs=None, replicates=50, seed=0, **options):
    path = write(folder, "mine.csv", answers)
    pairs = None if pairs is None else write(folder, "pairs.csv", pairs)
    return evaluate_tables(path, pairs, replicates=replicates, seed=seed, **options)


def metrics(folder, answers=ANSWERS, pairs=None, **options):
    return found_in(folder, answers, pairs, **options).metrics


def rows(frame, subset="all"):
    return {row["metric"]: row for row in frame.filter(pl.col("subset") == subset).iter_rows(named=True)}


def printed(folder, answers=ANSWERS, pairs=None, replicates=50):
    found = found_in(folder, answers, pairs, replicates=replicates)
    return list(everything(evaluation_report(found)))


def test_values_by_hand(tmp_path):
    found = rows(metrics(tmp_path, ANSWERS, PAIRS))
    expected = {
        "accuracy": 2 / 4,
        "auroc": 3 / 4,  # .9 > .8, .9 > .3, .6 > .3, but .6 < .8
        "within_question_auroc": 1.0,  # .9 > .8 among lesions, .6 > .3 among organs
        "ece15": 0.4,  # every row has a bin: (.1 + .8 + .4 + .3) / 4
        "brier": 0.225,  # (.01 + .64 + .16 + .09) / 4
        "aurc": 1 / 3,  # risks of the 1, 2, 3, 4 most confident: (0 + 1/2 + 1/3 + 2/4) / 4
        "hce90": 0.0,  # .9 is right
        "natural_ccg_auc": 1 / 2,  # q1 (.9 > .5) and q3 (.6 < .7) are decisive; q2 is not right on its own image
        "strict_ccg_auc": 1.0,  # q1 alone has one answer on both images
        "vrs": 1 / 3,  # 2/3 right on the own images, 1/3 on the donors'
        "vbr": 2 / 3,
        "decisive_pairs": 2.0,
        "source_images": 1.0,  # both are of ct-01
        "donor_images": 2.0,
        "strict_decisive_pairs": 1.0,
        "natural_few_sources": 1.0,
        "natural_ties": 0.0,
    }
    assert {name: found[name]["estimate"] for name in expected} == {
        name: pytest.approx(value, abs=1e-15) for name, value in expected.items()
    }
    assert (found["auroc"]["n"], found["auroc"]["n_clusters"]) == (4, 3)
    assert all(row["method"] == "mine" for row in found.values())


def test_methods_get_the_same_resamples_together_and_alone_in_any_order_of_rows(tmp_path):
    mine = pl.read_csv(ANSWERS.encode(), infer_schema=False).with_columns(method=pl.lit("mine"))
    both = pl.concat([mine, mine.with_columns(confidence=pl.lit("0.2"), method=pl.lit("lower"))])
    together = metrics(tmp_path, both.write_csv())
    assert together.filter(pl.col("method") == "mine").equals(metrics(tmp_path))
    twin = pl.concat([mine, mine.with_columns(method=pl.lit("twin"))])
    found = metrics(tmp_path, twin.write_csv()).partition_by("method", include_key=False)
    assert found[0].equals(found[1])
    text = columns(ANSWERS, "confidence", "correct")
    turned = pl.read_csv(text.encode(), infer_schema=False).reverse().write_csv()
    assert metrics(tmp_path, text).equals(metrics(tmp_path, turned))
    low = {seed: rows(metrics(tmp_path, text, seed=seed))["brier"]["low"] for seed in (0, 1)}
    assert low[0] != low[1]


def test_every_metric_of_a_table_is_explained(tmp_path):
    found = {name.removesuffix("_undefined_replicates") for name in metrics(tmp_path, ANSWERS, PAIRS)["metric"]}
    assert found <= {*explained.METRICS, *explained.COUNTS}, "its declaration in evaluation/ has no meaning"


def test_what_has_no_value_has_a_reason_and_no_number(tmp_path):
    found = rows(metrics(tmp_path, without(ANSWERS, "question", "answer"), PAIRS))
    assert found["within_question_auroc"]["reason"] == f"no column 'question' in {tmp_path}/mine.csv"
    strict = {name: row for name, row in found.items() if name.startswith("strict_")}
    assert {"strict_ccg_auc", "strict_decisive_pairs", "strict_few_donors", "strict_ties"} <= strict.keys()
    reasons = {(row["estimate"], row["low"], row["reason"]) for row in strict.values()}
    assert reasons == {(None, None, f"no column 'answer' in {tmp_path}/mine.csv")}
    assert found["natural_ccg_auc"]["estimate"] == 0.5
    all_right, reason = ANSWERS.replace(",0,", ",1,"), "one class only: all 4 rows are correct"
    found = rows(metrics(tmp_path, all_right))
    assert found["accuracy"]["estimate"] == 1.0
    assert [found["auroc"][name] for name in ("estimate", "low", "reason")] == [None, None, reason]
    found = rows(metrics(tmp_path))
    assert (found["natural_ccg_auc"]["estimate"], found["strict_ccg_auc"]["reason"]) == (None, "no pairs (--pairs)")
    one = "confidence,correct,image_id\n0.9,1,i\n0.2,0,i\n"
    assert rows(metrics(tmp_path, one))["brier"]["low"] is None


TYPES = "method,answer_type,sample_id,confidence,correct\na,open,q1,0.5,1\na,closed,q2,0.5,0\nb,open,q1,0.9,1\n"
PRINTED = {  # table, pairs, options
    "one method": (ANSWERS, None, {}),
    "pairs on one own image": (ANSWERS, PAIRS, {}),
    "pairs on two own images, without resamples": (MORE_ANSWERS, MORE_PAIRS, {"replicates": 0}),
    "no images": (columns(ANSWERS, "confidence", "correct"), None, {}),
    "no resamples": (ANSWERS, None, {"replicates": 0}),
    "one image": ("confidence,correct,image_id\n0.9,1,i\n0.2,0,i\n", None, {}),
    "one class": (ANSWERS.replace(",0,", ",1,"), None, {}),
    "scores": (ANSWERS.replace("confidence", "score"), None, {}),
    "types, and methods that answer different questions": (TYPES + "b,closed,q2,0.1,0\nb,closed,q3,0.1,0\n", None, {}),
}

WHOLE = ("pairs on two own images, without resamples", "scores", "types, and methods that answer different questions")


def test_what_is_printed(tmp_path):
    """The screen, and what --all says: printed.txt. The values are computed by hand above."""
    texts = {}
    for name, (answers, pairs, options) in PRINTED.items():
        found = found_in(tmp_path, answers, pairs, **options)
        all_that_is_said = list(everything(evaluation_report(found)))
        lines = all_that_is_said if name in WHOLE else all_that_is_said[:3]
        lines = [*(line.text for line in summary(evaluation_report(found))), *lines]
        texts[name] = "\n".join(lines).replace(f"{tmp_path}/", "")
    golden.check(Path(__file__).with_name("printed.txt"), texts)


def wide(n, seed=0, shift=0.0):
    """A table of calibrated answers, one per image, and as many of a method that always says the mean."""
    stream = np.random.default_rng(seed)
    confidence = stream.beta(2, 1, n)
    correct = (stream.random(n) < confidence - shift).astype(int)
    rows = [f"q{k},i{k},{z},{c:.4f},wide" for k, (c, z) in enumerate(zip(confidence, correct, strict=True))]
    rows += [f"q{k},i{k},{z},0.6667,constant" for k, z in enumerate(correct)]
    return "\n".join(["sample_id,image_id,correct,confidence,method", *rows])


@pytest.mark.parametrize(("shift", "word", "verb"), [(0.0, "not above", "reach"), (0.5, "above", "rarely exceed")])
def test_the_ece_is_read_beside_chance_and_has_no_interval(tmp_path, shift, word, verb):
    found = found_in(tmp_path, wide(90, shift=shift))
    of = found.metrics.filter(pl.col("subset") == "all", pl.col("method") == "wide")
    values = {row["metric"]: row for row in of.to_dicts()}
    ece, floor = values["ece15"]["estimate"], values["ece15_noise_floor"]["estimate"]
    assert (ece < floor) == (word == "not above")
    lines = list(everything(evaluation_report(found)))
    (line,) = (line for line in lines if line.startswith("ece15 ") and " wide " in line)
    assert line.split()[:5] == ["ece15", "wide", number(ece, 4), "90", "90"]
    assert line.endswith(f"{word} {number(floor, 4)}, which calibrated confidences {verb} by chance")
    assert [line for line in lines if line.startswith("ece15 has no interval: ")]


def test_differences_of_the_ece_have_a_reason_in_place_of_interval_and_p_value(tmp_path):
    found = found_in(tmp_path, wide(90), compare=["wide"])
    (row,) = found.differences.filter(pl.col("metric") == "ece15").to_dicts()
    eces = {r["method"]: r["estimate"] for r in found.metrics.filter(metric="ece15", subset="all").to_dicts()}
    assert row["estimate"] == eces["wide"] - eces["constant"]
    assert [row[name] for name in ("low", "high", "p", "p_holm")] == [None] * 4
    lines = list(everything(evaluation_report(found)))
    (line,) = (line for line in lines if line.startswith("ece15") and "wide - constant" in line)
    assert "no interval and no p-value: calibrated methods differ in it by chance" in line
    (other,) = found.differences.filter(pl.col("metric") == "squared_calibration_error").to_dicts()
    assert other["low"] <= other["estimate"] <= other["high"]
    assert other["p"] > 0.05


def test_answers_that_are_kept_have_intervals(tmp_path):
    found = found_in(tmp_path, wide(90), calibration=write(tmp_path, "other.csv", wide(90, seed=1)), target_risk=0.3)
    answers = pl.read_csv(wide(90).encode()).filter(method="wide")
    (row,) = found.thresholds.filter(method="wide", rule="empirical").to_dicts()
    kept = answers["confidence"].to_numpy() >= row["threshold"]
    wrong = answers["correct"].to_numpy()[kept] == 0
    assert (row["coverage_low"], row["coverage_high"]) == share_interval(kept, np.arange(90))
    assert (row["risk_low"], row["risk_high"]) == share_interval(wrong, np.arange(len(wrong)))
    (line,) = (line for line in everything(evaluation_report(found)) if " wide " in line and " empirical " in line)
    assert f"[{number(row['risk_low'], 4)}, {number(row['risk_high'], 4)}]" in line


def test_files_have_full_precision(tmp_path):
    found, out = found_in(tmp_path, ANSWERS, PAIRS), tmp_path / "new/folder"
    written = files.write(found, evaluation_report(found), out)
    names = ("reliability", "risk_coverage", "forest")
    assert written == ["metrics.csv", "graded.csv", *(f"{name}.pdf, .png, .csv" for name in names), "evaluate.html"]
    expected = {"metrics.csv", "graded.csv", "evaluate.html"}
    assert {path.name for path in out.iterdir()} == expected | {
        f"{n}.{k}" for n in names for k in ("csv", "pdf", "png")
    }
    assert pl.read_csv(out / "metrics.csv", schema=found.metrics.schema).equals(found.metrics)
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    files.write(found, evaluation_report(found), out)
    assert first == {path.name: path.read_bytes() for path in out.iterdir()}


WITH_INTERVALS = ("accuracy", "error_rate", "hce90", *WITH_PERCENTILES)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40))
@given(
    answers=st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans(), st.integers(0, 4)), min_size=1, max_size=20),
    own_cluster=st.booleans(),
)
def test_arbitrary_confidences_have_metrics_or_reasons(tmp_path, answers, own_cluster):
    names = ["confidence", "correct", "image_id"]
    frame = pl.DataFrame(answers, schema=names, orient="row").select(names[: 2 if own_cluster else 3])
    found = rows(metrics(tmp_path, frame.write_csv(), replicates=40))
    confidence, correct = frame["confidence"].to_list(), frame["correct"].to_list()
    assert found["accuracy"]["estimate"] == pytest.approx(sum(correct) / len(correct), abs=1e-15)
    assert found["ece15"]["estimate"] == pytest.approx(literal.ece(confidence, correct), abs=1e-12)
    assert found["aurc"]["estimate"] == pytest.approx(literal.aurc(confidence, correct), abs=1e-12)
    if len(set(correct)) == 2:
        assert found["auroc"]["estimate"] == pytest.approx(literal.auroc(confidence, correct), abs=1e-15)
    sizes = Counter(range(len(frame)) if own_cluster else frame["image_id"]).values()
    worth = sum(sizes) ** 2 / sum(n**2 for n in sizes)
    no_interval = None  # of one image alone, the line about all intervals says it once
    if worth < min(6, 0.75 * len(sizes)):
        no_interval = f"no interval: rows so unequal that {len(sizes)} images count as {worth:.2f}, expected 6"
    for row in found.values():
        if row["estimate"] is None:
            assert row["reason"] is not None
        else:
            assert row["reason"] == (no_interval if row["metric"] in WITH_INTERVALS else None)
        assert row["reason"] is None or (row["low"], row["high"]) == (None, None)
        assert row["estimate"] is None or math.isfinite(row["estimate"])
        assert row["low"] is None or row["low"] <= row["high"]
    of_one_image = [found[name] for name in WITH_PERCENTILES if name in found and found[name]["n_clusters"] == 1]
    assert all(row["low"] is None for row in of_one_image)
