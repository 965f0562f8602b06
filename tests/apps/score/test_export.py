"""Bundles: written from a study, read from a folder and from a hub, with a card whose numbers are the study's."""

import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dualread.apps import main as program
from dualread.apps.score.bundle_writer import export
from dualread.apps.score.scorer import Scorer
from dualread.artifacts.tables import from_rows, write_table
from dualread.artifacts.tensors import write_tensors
from dualread.errors import ArtifactError, ConfigError
from dualread.schema.columns import METRICS
from dualread.store.key import Action
from dualread.store.manifest import Manifest, file_table
from tests.apps.score import small
from tests.apps.score.hub import serving

RUN = ("tiny", "rlvr", 17)
LESION = "Is there a lesion?"
SHOWN = ("accuracy", "auroc", "ece15", "brier", "aurc", "natural_ccg_auc")
HEADINGS = dict(zip(("accuracy", "AUROC", "ECE", "Brier", "AURC", "CCG-AUC"), SHOWN, strict=True))
METHODS = ("dualread", "psr", "per", "p_state", "question_prior", "rlvr")


def metrics_rows():
    """Every metric of every method on two data sets, all different; one is undefined, another has no interval.

    The ECE of psr is below its noise floor.
    """
    value = 0.1
    for dataset in ("slake", "vqa_rad"):
        for method in METHODS:
            run = {"study": "small", **small.RUN, "dataset": dataset, "split": "test", "subset": "all"}
            run |= {"method": method}
            yield {**run, "metric": "ece15_noise_floor", "estimate": float(method == "psr"), "n": 40, "n_clusters": 12}
            for metric in (*SHOWN, "natural_few_donors"):
                value += 0.0012345678901
                undefined = (dataset, method, metric) == ("vqa_rad", "psr", "auroc")
                row = {**run, "metric": metric, "estimate": value, "low": value - 0.05, "high": value + 0.05}
                row |= {"estimate": None, "low": None, "high": None, "reason": "one class only"} if undefined else {}
                yield {**row, "n": 40, "n_clusters": 12}
            for rule, percent, found in (("", 10, None), ("", 20, 0.25), ("certified_", 20, 0.9)):
                reason = None if found else "validation: none"
                metric = f"{rule}threshold_at_risk_{percent}"
                yield {**run, "metric": metric, "estimate": found, "reason": reason, "n": 40, "n_clusters": 12}


@pytest.fixture(scope="module")
def finished(study, tmp_path_factory):
    """The study with metrics, and with one data set that was drawn here and one that was not."""
    study = replace(
        study, folder=shutil.copytree(study.folder, tmp_path_factory.mktemp("export") / "results" / "small")
    )
    (study.folder / "metrics").mkdir(exist_ok=True)
    write_table(study.folder / "metrics" / "metrics.parquet", from_rows(list(metrics_rows()), METRICS), METRICS)

    def artifact(path, stage, spec, **input_keys):
        folder = study.folder / path
        folder.mkdir(parents=True)
        (folder / "x").write_text("x")
        action = Action(stage=stage, code="c", spec=spec, inputs={}, packages={})
        made = Manifest(action=action, files=file_table(folder), input_keys=input_keys)
        (folder / "MANIFEST.json").write_bytes(made.to_bytes())
        return made

    phantom = artifact("phantoms/slake", "draw_phantom", {"name": "slake"})
    for name, key in (("slake", phantom.key), ("vqa_rad", "elsewhere")):
        spec = {"loader": {"module": f"data.datasets.{name}"}}
        artifact(f"manifests/{name}/test", "build_manifest", spec, source=key)
    return study


@pytest.fixture(scope="module")
def bundle(finished, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle") / "mine"
    export(finished.folder, RUN, folder, method="dualread", methods=["question_prior"], with_checkpoint=True)
    return folder


def test_a_bundle_scores_as_the_study_does(finished, bundle, tmp_path):
    own = Scorer.load(finished.reader("dualread"), finished.actor, methods=["question_prior"])
    moved = shutil.copytree(bundle, tmp_path / "elsewhere")
    there = Scorer.load(moved, methods=["question_prior"])
    for seed in (1, 2):
        one, other = (scorer(finished.image(seed), LESION, donor=finished.image(3)) for scorer in (own, there))
        assert {**vars(one), "decision": None} == {**vars(other), "decision": None}


def test_the_thresholds_of_the_study_decide(finished, bundle):
    confidence = Scorer.load(bundle)(finished.image(1), LESION).confidence
    assert 0.25 <= confidence < 0.9  # so that the two thresholds decide differently
    smallest, kept, refused = (
        Scorer.load(bundle, **asked)(finished.image(1), LESION).decision
        for asked in ({}, {"target_risk_percent": 20}, {"target_risk_percent": 20, "certified": True})
    )
    assert (smallest.keep, smallest.target_risk_percent) == (None, 10)
    assert smallest.reason.endswith("validation: none")
    assert (kept.keep, kept.threshold) == (True, 0.25)
    assert (refused.keep, refused.threshold) == (False, 0.9)
    with pytest.raises(ConfigError, match=r"threshold empirical at 5%: .* Known: .*empirical at 20%, certified at 20%"):
        Scorer.load(bundle, target_risk_percent=5)


def test_a_bundle_says_what_is_unlike_the_validation_questions(finished, tmp_path):
    study, names = tmp_path / "study", [f"q{k:02}" for k in range(80)]
    shutil.copytree(finished.folder, study, symlinks=True)
    states = study.joinpath("features", *map(str, RUN), "slake/validation/original")
    for folder in (manifest := study / "manifests/slake/validation", states):
        folder.mkdir(parents=True)
    pl.DataFrame({"sample_id": names, "cluster_id": names}).write_parquet(manifest / "manifest.parquet")
    index = pl.DataFrame({"sample_id": names, "row": range(80)}).with_columns(sample_index=pl.lit(0, pl.Int32))
    index.write_parquet(states / "features.parquet")
    config = json.loads((finished.actor / "checkpoint/config.json").read_text())
    usual = np.random.default_rng(0).normal(size=(80, config["text_config"]["hidden_size"]))
    write_tensors(states / "features.safetensors", {"h_pre": (1e-3 * usual).astype(np.float32)}, {})
    export(study, RUN, tmp_path / "bundle", method="dualread", with_checkpoint=True)
    scored = Scorer.load(tmp_path / "bundle")(finished.image(1), LESION)
    assert scored.distance_percentile == 100
    assert any(note.startswith("unlike what") for note in scored.notes)


def test_without_its_actor_a_bundle_names_it(finished, tmp_path):
    export(finished.folder, RUN, tmp_path / "bare", method="dualread")
    card = (tmp_path / "bare" / "README.md").read_text()
    required = json.loads((tmp_path / "bare" / "bundle.json").read_text())["scoring"]["checkpoint"]
    assert set(required) == {path.name for path in (finished.actor / "checkpoint").iterdir()}
    assert all(f"| `{name}` | `{sha256}` |" in card for name, sha256 in required.items())
    with pytest.raises(ConfigError, match="no actor travels with this reader"):
        Scorer.load(tmp_path / "bare")
    assert Scorer.load(tmp_path / "bare", finished.actor)(finished.image(1), LESION).notes == ()


def test_the_cards_front_matter_has_the_numbers_of_the_metrics(finished, bundle):
    from huggingface_hub import ModelCard

    data = ModelCard.load(bundle / "README.md").data
    assert (data.library_name, data.license) == ("dualread", "other")  # vqa_rad was not drawn here
    assert {"dualread", "visual-question-answering"} <= set(data.tags)
    metrics = pl.read_parquet(finished.folder / "metrics" / "metrics.parquet").filter(method="dualread", split="test")
    rows = metrics.filter(pl.col("metric").is_in(SHOWN)).iter_rows(named=True)
    expected = {(row["dataset"], row["metric"]): row["estimate"] for row in rows}
    assert {(r.dataset_name, HEADINGS[r.metric_name]): r.metric_value for r in data.eval_results} == expected


def test_every_printed_cell_of_the_card_is_its_metric_rounded(finished, bundle):
    metrics = pl.read_parquet(finished.folder / "metrics" / "metrics.parquet")
    found = {tuple(row[k] for k in ("dataset", "method", "metric")): row for row in metrics.iter_rows(named=True)}
    text = (bundle / "README.md").read_text().partition("\n## Results\n")[2].partition("\n## Thresholds\n")[0]
    sections = re.split(r"\n### ", text)[1:]
    assert [section.split("\n")[0] for section in sections] == ["slake", "vqa_rad"]  # the one it was fitted on first
    n_cells = 0
    for section in sections:
        lines = [line.strip("|").split("|") for line in section.split("\n") if line.startswith("|")]
        head, _, *rows = [[cell.strip() for cell in line] for line in lines]
        assert [row[0] for row in rows] == ["dualread", "psr", "per", "p_state", "question_prior (null)"]
        for name, *cells in rows:
            for heading, cell in zip(head[1:], cells, strict=True):
                row = found[section.split("\n")[0], name.partition(" ")[0], HEADINGS[heading]]
                values = [row[k] for k in ("estimate", "low", "high")]
                mark = "°" if (name, heading) == ("psr", "ECE") else ""
                assert cell == ("—" if None in values else f"{{:.3f}}{mark} [{{:.3f}}, {{:.3f}}]".format(*values))
                n_cells += 1
    assert n_cells == 2 * 5 * 6


def test_metrics_csv_has_full_precision_and_the_card_says_where_the_data_come_from(finished, bundle):
    metrics = pl.read_parquet(finished.folder / "metrics" / "metrics.parquet")
    own = {(r["dataset"], r["method"], r["metric"]): r["estimate"] for r in metrics.iter_rows(named=True)}
    with (bundle / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"dualread", "psr", "per", "p_state", "question_prior"}
    for row in rows:
        value = own[row["dataset"], row["method"], row["metric"]]
        assert (float(row["estimate"]) if row["estimate"] else None) == value
    card = (bundle / "README.md").read_text()
    assert "| `slake` | drawn by DualRead in the format of slake: phantoms, no patients |" in card
    assert "| `vqa_rad` | read by `vqa_rad`." in card
    assert "No licence was chosen" in card


@pytest.fixture(scope="module")
def elsewhere(finished, bundle, tmp_path_factory):
    """The bundle of another method, and the output of a process that cannot import Snakemake, with a hub's downloads.

    The hub is a server on this machine: of a bundle and of an actor, huggingface_hub downloads two revisions each.
    """
    folder = tmp_path_factory.mktemp("elsewhere")
    psr, changed = folder / "psr", folder / "changed"
    export(finished.folder, RUN, psr, method="psr", with_checkpoint=True)
    shutil.copytree(bundle / "checkpoint", changed)
    config = changed / "generation_config.json"
    config.write_text(config.read_text() + "\n")
    (changed / "README.md").write_text("is not downloaded")
    code = (
        "import sys; sys.modules['snakemake'] = None\n"  # an import would raise
        "from dualread import Scorer\n"
        "from dualread.apps.score import readings\n"
        "readings.why_no_answer = lambda *_: None\n"  # as here: an untrained checkpoint's answers have no valid form
        f"reader, actor = {str(finished.reader('dualread'))!r}, {str(finished.actor)!r}\n"
        "def load(*names, **settings):\n"
        "    try:\n"
        "        score = Scorer.load(*names, **settings)\n"
        f"        print(score.method, repr(score({str(finished.image(1))!r}, {LESION!r}).confidence))\n"
        "    except Exception as error:\n"
        "        print(type(error).__name__, error)\n"
        "load(reader, actor)\n"
        "load('owner/name', revision='main')\n"
        "load('owner/name', revision='old')\n"
        "load('owner/nothing')\n"
        "for name in ('owner/actor@v1.0', 'owner/actor@changed', 'owner/actor@none', 'owner/actor'):\n"
        "    load(reader, name)\n"
    )
    of_actor = {"v1.0": bundle / "checkpoint", "changed": changed}
    with serving({"owner/name": {"main": bundle, "old": psr}, "owner/actor": of_actor}) as address:
        environment = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(folder / "home")}
        environment |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
        environment |= {"OMP_NUM_THREADS": "1"}  # as in the fixture `tiny`
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return psr, done.stdout.splitlines()


NOT_THERE = "not on this machine, and cannot be downloaded from the hub "


@pytest.mark.rest
def test_without_the_workflow_a_study_a_bundle_and_an_actor_from_a_hub_score_as_here(finished, bundle, elsewhere):
    """Another revision has another actor, which is refused; without a revision, the text is the name of a folder."""
    psr, printed = elsewhere
    of_study = Scorer.load(finished.reader("dualread"), finished.actor)
    here = [
        f"{scorer.method} {scorer(finished.image(1), LESION).confidence!r}"
        for scorer in (of_study, Scorer.load(bundle), Scorer.load(psr))
    ]
    assert [line.split()[0] for line in here] == ["dualread", "dualread", "psr"]
    assert printed[:3] == here
    assert printed[3].startswith(f"ArtifactError owner/nothing: {NOT_THERE}(")
    scored, changed, none, folder = printed[4:]
    assert scored == here[0]
    assert changed.startswith("ArtifactError ")
    assert "checkpoint: generation_config.json has sha256" in changed
    assert "README.md" not in changed
    assert none.startswith(f"ArtifactError owner/actor: {NOT_THERE}")
    assert folder.startswith("ArtifactError owner/actor: no config.json here. Expected ")


# --- What is refused


def test_a_damaged_bundle_is_refused(bundle, tmp_path):
    cut = shutil.copytree(bundle, tmp_path / "cut")
    file = cut / "readers" / "dualread.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ArtifactError, match=r"dualread\.safetensors: its sha256 is not the one that"):
        Scorer.load(cut)
    file.unlink()
    with pytest.raises(ArtifactError, match=r"dualread\.safetensors: cannot be read"):
        Scorer.load(cut)
    known = json.loads((cut / "bundle.json").read_text())
    (cut / "bundle.json").write_text(json.dumps({**known, "readers": {"../../x": "0"}}))
    with pytest.raises(ArtifactError, match=r"bundle.json or thresholds.json cannot be read"):
        Scorer.load(cut)


def test_unknown_names_are_answered_with_the_known_ones(finished, tmp_path):
    for run, said in (
        (("tinny", "rlvr", 17), r"no backbone 'tinny'\. Known: tiny\. Did you mean 'tiny'\?"),
        (("tiny", "rlcr", 17), r"no actor 'rlcr'\. Known: rlvr"),
        (("tiny", "rlvr", 18), r"no seed '18'\. Known: 17"),
    ):
        with pytest.raises(ConfigError, match=said):
            export(finished.folder, run, tmp_path / "out", method="dualread")
    with pytest.raises(ArtifactError, match=r"no such file or folder"):
        export(finished.folder, RUN, tmp_path / "out", method="dualreed")
    with pytest.raises(ConfigError, match=r"no reader of 'saplma'\. Known: "):
        export(finished.folder, RUN, tmp_path / "out", method="dualread", methods=["saplma"])
    assert not (tmp_path / "out").exists()


def test_a_reader_in_the_folder_of_another_one_is_not_exported(finished, tmp_path):
    copied = shutil.copytree(finished.folder, tmp_path / "small")
    folder = copied.joinpath("readers", *map(str, RUN))
    (folder / "psr").rename(folder / "mine")
    with pytest.raises(ArtifactError, match="holds the reader of 'psr', expected that of 'mine'"):
        export(copied, RUN, tmp_path / "out", method="mine")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_left_alone_and_a_bundle_is_replaced(finished, tmp_path):
    (tmp_path / "diary.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds something else than an exported bundle"):
        export(finished.folder, RUN, tmp_path, method="dualread")
    out = tmp_path / "clone"
    export(finished.folder, RUN, out, method="dualread", methods=["rlvr"], with_checkpoint=True)
    (out / ".git").mkdir()
    export(finished.folder, RUN, out, method="psr", license="mit")
    assert sorted(path.name for path in (out / "readers").iterdir()) == ["psr.safetensors"]
    assert (out / ".git").is_dir()
    assert not (out / "checkpoint").exists()
    assert "license: mit" in (out / "README.md").read_text()


def test_the_command_exports_and_scores(finished, tmp_path, capsys):
    call = ["export", str(finished.folder), "--backbone", "tiny", "--actor", "rlvr", "--seed", "17"]
    assert program.main([*call, "--out", str(tmp_path / "mine"), "--with-checkpoint"]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'mine'}: readers of dualread, 3 thresholds, its actor\n"
    asked = ["--image", str(finished.image(1)), "--question", LESION, "--json"]
    assert program.main(["score", "--reader", str(tmp_path / "mine"), *asked, "--target-risk", "20"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["decision"]["keep"] is (result["confidence"] >= 0.25)


def test_a_pushed_bundle_comes_back_from_the_hub_as_it_is_here(finished, tmp_path):
    out, there, new = tmp_path / "mine", tmp_path / "hub", tmp_path / "new"
    (there / "readers").mkdir(parents=True)
    (there / "readers" / "old.safetensors").touch()
    call = ["export", str(finished.folder), "--backbone", "tiny", "--actor", "rlvr", "--seed", "17", "--out", str(out)]
    with serving({"owner/mine": {"main": there}, "owner/new": {"main": new}}) as address:
        for token, name in (("another", "mine"), ("reader", "mine"), ("mine", "mine"), ("mine", "new")):
            code = (
                f"import sys; from dualread.apps.main import main; sys.exit(main({[*call, '--push', f'owner/{name}']}))"
            )
            environment = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": token}
            environment |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
            if token != "mine":  # a repository is changed as a whole or not at all
                assert done.returncode == 1
                assert "cannot be pushed to owner/mine" in done.stderr
                assert sorted(path.name for path in (there / "readers").iterdir()) == ["old.safetensors"]
                continue
            assert done.returncode == 0, done.stderr
            commit = hashlib.sha1(b"main").hexdigest()
            assert f"pushed to owner/{name}: dualread score --reader owner/{name} --revision {commit}" in done.stdout
    assert file_table(there) == file_table(new) == file_table(out)
