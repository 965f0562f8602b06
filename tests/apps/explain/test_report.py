import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from dualread.apps.explain import report
from dualread.apps.explain.cells import find_cell
from dualread.apps.explain.report import explain_cell
from dualread.errors import ArtifactError, ConfigError
from dualread.store.place import find_target
from tests.apps.explain.small_study import SmallStudy


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return SmallStudy(tmp_path_factory.mktemp("small"))


def _explained(study, words, table="table", **options):
    found = find_target(getattr(study, table).key, study.store)
    return list(explain_cell(found, study.store, words=words, **options))


def test_a_number_is_the_mean_of_its_seeds(study):
    lines = _explained(study, "tiny,dualread,slake,auroc")
    # (.8 + .9) / 2 = .85; the deviation is .1 / sqrt(2) = .071
    assert lines[0] == "tiny,slake,all,dualread,auroc: .850±.071"
    assert lines[1].endswith("the mean of 2 seeds, as recomputed from the metrics below")
    metric, *_, table = lines[2].removeprefix("  code: ").split(", ")
    for place, text in ((metric, 'name="auroc"'), (table, "build = ")):
        file, number = place.split(" ")[1].split(":")
        assert text in Path(file).read_text().splitlines()[int(number) - 1]
    assert "dualread, actor rlvr, seed 17: 0.800000 (on 104 rows of 52 images)" in lines
    assert "dualread, actor rlvr, seed 29: 0.900000 (on 104 rows of 52 images)" in lines


@pytest.mark.parametrize(
    ("table", "subset", "metric", "file", "text"),
    [
        ("main", "all", "accuracy", "evaluation/answer_metrics.py", 'name="accuracy"'),
        ("main", "condition:black", "accuracy", "evaluation/conditions.py", 'name="accuracy"'),
        ("main", "all", "answers_changed", "evaluation/conditions.py", 'name="answers_changed"'),
        ("main", "all", "brier_resolution", "evaluation/answer_metrics.py", 'name=f"brier_{part}"'),
        ("thresholds", "all", "certified_coverage_at_risk_10", "evaluation/thresholds.py", "_at_risk_{percent"),
        ("claims", "all", "filter_any_kept_at_risk_10", "evaluation/claim_filter.py", 'f"filter_{loss}_{kind}_at_risk'),
        ("ccg", "all", "decisive_pairs", "evaluation/pair_metrics.py", 'name="decisive_pairs"'),
        ("ccg_denom", "all", "retained_low_percent", "reporting/tables/ccg_denom.py", 'name="retained_low_percent"'),
    ],
)
def test_the_line_that_declares_a_metric(table, subset, metric, file, text):
    cell = SimpleNamespace(row={"metric": metric, "subset": subset})
    action = SimpleNamespace(spec={"table": {"module": f"reporting.tables.{table}"}})
    declared, built = report._code(cell, SimpleNamespace(manifest=SimpleNamespace(action=action)))
    for place, end, line in ((declared, file, text), (built, f"reporting/tables/{table}.py", "build")):
        name, number = place.split(" ")[1].split(":")
        assert name.endswith(end)
        assert line in Path(name).read_text().splitlines()[int(number) - 1]


def test_every_artifact_of_a_run_is_shown_once(study):
    lines = _explained(study, "dualread slake auroc seed=17")
    run = study.metrics["tiny/rlvr/17/dualread"]
    start = f"  metrics: compute_metrics {run.key[:8]}  seed 17  code cccccccc"
    below = lines[next(k for k, line in enumerate(lines) if line.startswith(start)) + 1 :]
    names = [line.split(": ")[0] for line in below[: below.index("")]]
    # Depth first. An artifact that was shown above is given by its key, and the data set `far` does not appear.
    tree = ["predictions", "  reader", "    parent/before", "      graded", "        generations", "          actor"]
    tree += ["          manifest", "        above", "  above", "above"]
    assert names == [f"    {name}" for name in tree]
    manifest = study.manifests["slake"].key[:8]
    assert [line for line in below if line.startswith("            above")] == [
        f"            above: manifest {manifest}"
    ]
    (actor,) = (line for line in below if "train_actor" in line)
    assert "seed 17" in actor
    assert "checkpoint/model.safetensors" in actor
    assert actor.endswith("results/small/actors/17")
    (predictions,) = (line for line in below if "score_answers" in line)
    assert "  2 rows  " in predictions
    assert any("made with polars 2.1.0, python 3." in line for line in below)


def test_a_mean_over_data_sets_lists_its_members(study):
    lines = _explained(study, "dualread ood6 auroc")
    assert lines[0] == "tiny,ood6,all,dualread,auroc: .650±.071"
    at = lines.index("dualread, actor rlvr, seed 29: 0.700000 (on 104 rows of 52 patients)")
    assert lines[at + 1] == "  far: 0.700000 (on 104 rows of 52 patients)"
    assert any("manifest/far/test " in line for line in lines)


def test_an_undefined_number_gives_the_seed_and_the_reason(study):
    lines = _explained(study, "psr ood6 auroc")
    assert lines[0] == "tiny,ood6,all,psr,auroc: --- (seed 29: far: one class)"
    assert "psr, actor rlvr, seed 29: undefined, far: one class (on 104 rows of 52 patients)" in lines


def test_the_first_questions_are_shown_with_completion_and_confidence(study):
    lines = _explained(study, "dualread slake auroc")
    shown = lines[lines.index("dualread, seed 17, slake/test:") :]
    assert shown[1].strip() == "question slake/test/1: Is the lung clear?"
    assert "    reference answer: yes; closed, role test, row 0 of the official file, image image-a" in shown
    assert "      completion: '<answer>yes, says 17</answer>' (stop)" in shown
    assert "      answer: 'yes', valid; correct" in shown
    assert "      confidence of dualread: 0.750000 (score 1.000000)" in shown


def test_one_question_is_shown_for_every_seed(study):
    lines = _explained(study, "dualread slake auroc", sample_id="slake/test/1")
    of_seeds = [f"dualread, seed {seed}, slake/test:" for seed in (17, 29)]
    assert [line for line in lines if line.startswith("dualread, seed ")] == of_seeds
    assert "      confidence of dualread: 0.500000 (score 1.000000)" in lines


def test_a_question_is_shown_with_its_donor_and_what_was_replayed(study):
    lines = _explained(study, "dualread ood6 auroc 17", sample_id="far/test/1")
    assert "    donor: far/test/2, one of 3, reference answer: no, image image-b" in lines
    assert (
        "      replayed in row 0 of the features: 9 prompt tokens, 4 of the image; answer in tokens 3, 4, closed by"
        " token 5; log-probabilities differ from the generation's by at most 2.0e-06"
    ) in lines
    without = _explained(study, "dualread ood6 auroc 17", sample_id="far/test/2")
    assert not [line for line in without if "donor: " in line or "replayed" in line]


def test_a_difference_has_the_runs_of_both_methods(study):
    lines = _explained(study, "dualread psr", table="paired")
    # .85 - .70 = .15
    assert lines[0] == "tiny,ours,slake,test,auroc,dualread,psr: +.150"
    assert lines[1].endswith("the mean of 2 seeds, method minus baseline, as recomputed from the metrics below")
    assert sum(line.startswith("psr, actor rlvr, seed") for line in lines) == 2


def test_a_printed_number_that_differs_from_the_metrics_is_reported(study, tmp_path):
    shutil.copytree(study.store.entry(study.table.key), tmp_path / "table")
    path = tmp_path / "table" / "main.csv"
    path.chmod(0o644)
    path.write_text(path.read_text().replace("slake,all,dualread,auroc,0.85", "slake,all,dualread,auroc,0.95"))
    lines = list(
        explain_cell(find_target(str(tmp_path / "table"), study.store), study.store, words="dualread slake auroc")
    )
    assert "BUT the metrics below give 0.8500000000000001" in lines[1]


@pytest.mark.parametrize(
    ("words", "options", "kind", "said"),
    [
        ("dualread slake auroc", {"sample_id": "slake/test/11"}, ConfigError, "The nearest: slake/test/1"),
        ("dualread slake auroc 43", {}, ConfigError, "auroc has no seed 43. Known: 17, 29"),
        ("dualread", {"table": "collected"}, ArtifactError, "0 .csv files, but --cell needs a table"),
    ],
)
def test_what_is_not_there_is_refused_with_the_nearest(study, words, options, kind, said):
    with pytest.raises(kind, match=said):
        _explained(study, words, **options)


@pytest.mark.parametrize(
    ("words", "seed"),
    [
        ("tiny,dualread,slake,auroc", None),
        ("auroc dualread slake", None),
        ("method=dualread, slake, auroc, 17", 17),
        ("dualread slake auroc 29", 29),
        ("seed=2 dualread slake auroc", 2),  # the table holds the value 2, its number of seeds
        (None, None),
    ],
)
def test_any_words_that_only_one_cell_has_find_it(study, words, seed):
    table = find_target(study.table.key, study.store)
    rows = (table.directory / "main.csv").read_text().splitlines()
    cell = find_cell(table, words or next(line for line in rows if "dualread,auroc" in line))  # a pasted row
    assert (cell.name, cell.seed) == ("tiny,slake,all,dualread,auroc", seed)


def test_several_cells_and_the_nearest_ones_are_listed(study):
    table = find_target(study.table.key, study.store)
    both = r"2 cells have these words(.|\n)*tiny,slake,all,psr,auroc\n  tiny,slake,all,dualread,auroc"
    with pytest.raises(ConfigError, match=both):
        find_cell(table, "slake,auroc")
    with pytest.raises(ConfigError) as error:
        find_cell(table, "dualreed,slake,auroc")
    assert str(error.value).splitlines()[1] == "  tiny,slake,all,dualread,auroc"
    with pytest.raises(ConfigError) as error:
        find_cell(table, "dualreed,slake,metrik=auroc")
    lines = str(error.value).splitlines()
    assert "No cell has 'dualreed'. Did you mean 'dualread'?" in lines
    assert lines[-1].endswith("Did you mean 'metric'?")
