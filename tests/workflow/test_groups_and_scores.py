"""Groups by columns of a table, scores that are not calibrated, and answer sets, in a study over the micro study.

A clinic's table asks about 40 drawn images, with the sex of each patient and the site; one question has options.
"""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

import dualread
from dualread.apps.explain.report import explain_cell
from dualread.apps.score.bundle_writer import export
from dualread.apps.score.results import Question
from dualread.apps.score.scorer import Scorer
from dualread.store.place import find_target
from dualread.store.store import Store
from tests.workflow.faults import STUDY, copy

pytestmark = pytest.mark.rest

TABLES = tuple(f"tables/{name}.tex" for name in ("cascade", "subgroups", "answer_sets"))
CLINIC = """
study: groups
only: {datasets: [slake, clinic], methods: [rlvr, dualread, sc2, choice]}
subgroups: [content_family, sex, site]
datasets:
  clinic:
    {label: Clinic, loader: table, source: {folder: clinic}, settings: {subgroups: [sex, site]}, splits: [test],
     roles: {test: ood}, seed: 0, pairing: {splits: [test], match_on: []}, prompt: shared}
views: {choices: {choices: {options: true}}}
methods:
  sc2: {uncalibrated: true}
  choice: {label: Choices, group: Likelihood, actor: rlvr, reader: choice_probability, views: [choices]}
metrics: {miss_percent: [50, 10]}
tables: {cascade: {methods: [dualread, sc2]}, subgroups: {}, answer_sets: {methods: [choice]}}
figures: {subgroups: {methods: [dualread, sc2]}}
"""


def write_clinic(folder: Path) -> None:
    """Write a table of 80 questions about 40 images; every eighth image has no site."""
    folder.mkdir()
    stream, rows = np.random.default_rng(5), []
    for k in range(40):
        Image.fromarray(stream.integers(0, 255, (64, 64)).astype(np.uint8)).save(folder / f"{k}.png")
        of_image = {"image": f"{k}.png", "sex": "fm"[k % 2], "site": None if k % 8 == 0 else k % 3}
        for letter, question, golds, options in (
            ("W", "Which organ is shown in the image?", ("Liver", "Brain"), ["Brain", "Liver", "Lung"]),
            ("I", "Is there a lesion in the image?", ("No", "Yes"), []),
        ):
            gold = golds[int(stream.integers(2))]
            named = {"id": f"{k}{letter}", "question": question, "reference_answers": [gold], "options": options}
            rows.append(json.dumps(named | of_image))
    (folder / "test.jsonl").write_text("\n".join(rows))


@pytest.fixture(scope="module")
def done(micro, tmp_path_factory):
    checkout = copy(micro, tmp_path_factory.mktemp("groups") / "checkout")
    write_clinic(checkout.folder / "clinic")
    (checkout.folder / "clinic.yaml").write_text(CLINIC)
    run = checkout.snakemake(*TABLES, "figures/subgroups.pdf", study=f"{STUDY} clinic.yaml")
    assert run.returncode == 0, run.text
    assert "train_actor" not in run.computed()
    return checkout


def test_the_table_has_the_groups_of_each_column(done):
    cells = pl.read_csv(done.folder / "tables/subgroups.csv").filter(dataset="clinic", metric="accuracy")
    groups = {by: set(part["group"]) for (by,), part in cells.group_by("by")}
    assert groups == {"sex": {"f", "m"}, "site": {"0", "1", "2", None}}
    of_sex = cells.filter(by="sex", method="dualread")
    assert of_sex["n"].to_list() == [40, 40]
    assert of_sex["simultaneous_low"].null_count() == 0
    assert (done.folder / "figures/subgroups.csv").exists()


def test_evaluate_gives_the_same_numbers_of_the_exported_answers(done, tmp_path):
    where = "results/groups/answers/qwen3-vl-tiny/rlvr/17"
    run = done.snakemake(f"{where}/MANIFEST.json", study=f"{STUDY} clinic.yaml")
    assert run.returncode == 0, run.text
    answers = done.folder / where
    found = dualread.evaluate(
        answers / "answers.parquet", answers / "pairs.parquet", by=["sex", "site"], datasets=["clinic"]
    ).groups.metrics
    for method in ("rlvr", "dualread", "sc2"):
        place = done.folder / "results/groups/subgroups/qwen3-vl-tiny/rlvr/17" / method / "subgroups.parquet"
        own = pl.read_parquet(place).filter(dataset="clinic")
        both = own.join(found.filter(method=method), on=["by", "group", "metric"], nulls_equal=True, suffix="_other")
        assert len(both) > 50
        for name in ("estimate", "simultaneous_low", "simultaneous_high", "difference_low", "p_holm"):
            for mine, theirs in both.select(name, f"{name}_other").iter_rows():
                assert mine == (None if theirs is None else pytest.approx(theirs))


def test_scores_have_no_probabilities_and_read_no_label(done):
    reader = done.folder / "results/groups/readers/qwen3-vl-tiny/rlvr/17/sc2/MANIFEST.json"
    assert "graded" not in reader.read_text()
    metrics = pl.read_parquet(done.folder / "results/groups/metrics/qwen3-vl-tiny/rlvr/17/sc2/metrics.parquet").filter(
        dataset="clinic", split="test", subset="all"
    )
    known = dict(metrics.select("metric", "estimate").iter_rows())
    assert known["brier"] is known["ece15"] is None
    assert known["imputed_share"] == 0
    assert known["aurc"] is not None
    printed = pl.read_csv(done.folder / "tables/cascade.csv").filter(method="sc2", metric="brier")
    assert set(printed["printed"]) == {"---"}
    assert "only the order of scores counts" in (done.folder / "tables/cascade.tex").read_text()


def shares(done, dataset, split):
    """Return the share of each choice in the likelihoods of its question's, by question and name."""
    likelihoods: dict[str, dict[str, float]] = {}
    place = f"results/groups/views/qwen3-vl-tiny/rlvr/17/{dataset}/{split}/original/choices/choices.parquet"
    for row in pl.read_parquet(done.folder / place).iter_rows(named=True):
        likelihoods.setdefault(row["sample_id"], {})[row["choice"]] = np.exp(row["log_prob"])
    return {name: {choice: p / sum(of.values()) for choice, p in of.items()} for name, of in likelihoods.items()}


def printed_sets(done):
    cells = pl.read_csv(done.folder / "tables/answer_sets.csv", infer_schema_length=None).filter(dataset="clinic")
    return {row["metric"]: row["mean"] for row in cells.filter(subset="all").iter_rows(named=True)}


def test_answer_sets_hold_the_right_choice_as_often_as_the_view_says(done):
    """The coverage is recounted, choice by choice, from the file of likelihoods and the printed threshold."""
    printed, probabilities = printed_sets(done), shares(done, "clinic", "test")
    assert printed["set_questions_with_choices"] == 80
    manifest = pl.read_parquet(done.folder / "results/groups/manifests/clinic/test/manifest.parquet")
    right, size = 0, 0
    for sample_id, (gold,), options in manifest.select("sample_id", "reference_answers", "options").iter_rows():
        of = probabilities[sample_id]
        assert set(of) == ({"A", "B", "C"} if options else {"yes", "no"})
        name = "ABC"[options.index(gold)] if options else gold.lower()
        chosen = [choice for choice, value in of.items() if value >= printed["set_threshold_at_miss_50"]]
        right, size = right + (name in chosen), size + len(chosen)
    assert printed["set_coverage_at_miss_50"] == pytest.approx(right / 80)
    assert printed["set_mean_size_at_miss_50"] == pytest.approx(size / 80)


def test_sets_of_groups_are_those_of_evaluate(done):
    """The exported answers get a column per choice, and the name of the right one in place of their references."""
    answers = done.folder / "results/groups/answers/qwen3-vl-tiny/rlvr/17"
    run = done.snakemake(str(answers.relative_to(done.folder) / "MANIFEST.json"), study=f"{STUDY} clinic.yaml")
    assert run.returncode == 0, run.text
    names = ["A", "B", "C", "D", "yes", "no"]

    def with_choices(file, dataset, split):
        manifest = pl.read_parquet(done.folder / f"results/groups/manifests/{dataset}/{split}/manifest.parquet")
        golds = {}
        for name, references, options in manifest.select("sample_id", "reference_answers", "options").iter_rows():
            choices = dict(zip("ABCD", options, strict=False)) if options else {"yes": "yes", "no": "no"}
            of = [key for key, text in choices.items() if text.lower() in [gold.lower() for gold in references]]
            golds[name] = of[0] if of else None
        rows = [{"sample_id": name, "right": golds[name], **of} for name, of in shares(done, dataset, split).items()]
        columns = pl.DataFrame(rows, schema={"sample_id": pl.String, "right": pl.String} | dict.fromkeys(names, float))
        table = pl.read_parquet(answers / f"{file}.parquet").filter(method="choice", dataset=dataset)
        joined = table.join(columns.drop_nulls("right"), on="sample_id")
        return joined.with_columns(pl.col("right").alias("reference_answer"), pl.lit("all").alias("dataset"))

    found = dualread.evaluate(
        with_choices("answers", "clinic", "test"),
        calibration=with_choices("validation", "slake", "validation"),
        choices={name: name for name in names},
        miss=0.5,
        by=["sex", "site"],
    ).answer_sets
    cells = pl.read_csv(done.folder / "tables/answer_sets.csv", infer_schema_length=None).filter(dataset="clinic")
    printed = {(row["subset"], row["metric"]): row["mean"] for row in cells.iter_rows(named=True)}
    assert len(found) == 1 + 2 + 4
    for row in found.iter_rows(named=True):
        named = "" if row["group"] is None else f"={row['group']}"
        subset = "all" if row["by"] is None else f"group:{row['by']}{named}"
        for kind in ("threshold", "coverage", "mean_size", "empty", "single"):
            assert printed[subset, f"set_{kind}_at_miss_50"] == pytest.approx(row[kind])
        assert printed[subset, "set_questions_with_choices"] == row["n"]
    text = (done.folder / "tables/answer_sets.tex").read_text()
    assert "sex f" in text
    assert "site (no value)" in text


def test_scored_sets_are_those_of_the_study(done):
    made = done.snakemake("results/groups/metrics/MANIFEST.json", study=f"{STUDY} clinic.yaml")
    assert made.returncode == 0, made.text
    bundle = done.folder / "mine"
    run = ("qwen3-vl-tiny", "rlvr", 17)
    export(done.folder / "results/groups", run, bundle, method="dualread", methods=["choice"], with_checkpoint=True)
    scorer = Scorer.load(bundle, methods=["choice"])
    folder, threshold = done.folder / "results/groups/manifests/clinic/test", printed_sets(done)
    manifest = pl.read_parquet(folder / "manifest.parquet")
    asked = [
        Question(
            **{name: row[name] for name in ("question", "options", "answer_type")}, image=folder / row["image_files"][0]
        )
        for row in manifest.iter_rows(named=True)
    ]
    own, differ = shares(done, "clinic", "test"), 0
    for sample_id, scored in zip(manifest["sample_id"], scorer.each(asked), strict=True):
        few, found = scored.answer_sets  # of 10 and of 50 percent
        assert (few.miss_percent, found.threshold) == (10, threshold["set_threshold_at_miss_50"])
        assert few.threshold == threshold["set_threshold_at_miss_10"]
        for option, p in zip(found.options, own[sample_id].values(), strict=True):
            assert option.probability == pytest.approx(p, abs=1e-5)
            assert option.in_set == (p >= found.threshold)
            differ += option.in_set
    assert 0 < differ < sum(map(len, own.values()))


@pytest.mark.parametrize(
    ("table", "words", "question"),
    [
        ("answer_sets", "clinic set_coverage_at_miss_50 subset=all", "clinic/test/0W"),
        ("answer_sets", "clinic set_mean_size_at_miss_50 subset=group:sex=m", "clinic/test/1W"),
        ("answer_sets", "clinic set_mean_size_at_miss_50 subset=group:site", "clinic/test/0W"),
        ("subgroups", "clinic dualread metric=accuracy by=sex group=m", "clinic/test/1W"),
        ("subgroups", "clinic dualread metric=worst_accuracy by=sex", None),
    ],
)
def test_explain_recomputes_a_cell_of_a_group(done, monkeypatch, table, words, question):
    monkeypatch.chdir(done.folder)
    found = find_target(f"tables/{table}.tex", Store(done.folder / "results/store"))
    lines = list(explain_cell(found, Store(done.folder / "results/store"), words=words))
    assert lines[1].endswith("of one run, as recomputed from the metrics below")
    [declared, _] = lines[2].removeprefix("  code: ").split(", ")
    file, number = declared.split(" ")[1].split(":")
    line = Path(file).read_text().splitlines()[int(number) - 1]
    assert ("set_" if table == "answer_sets" else "accuracy") in line
    assert any(line.lstrip().startswith("predictions: score_answers") for line in lines)
    shown = [line.split()[1].rstrip(":") for line in lines if line.startswith("  question ")]
    if question is not None:
        assert shown[0] == question
    if table == "answer_sets":  # the validation questions have chosen the threshold
        assert any("view/choices/slake/validation/original" in line for line in lines)
        [first, *_] = [line for line in lines if line.startswith("    choices: ")]
        p = shares(done, "clinic", "test")[shown[0]]
        assert first == f"    choices: {', '.join(f'{name} {p[name]:.4f}' for name in p)}"
