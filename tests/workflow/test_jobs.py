"""Which jobs a study has, and which run again after an edit: by dry runs, and with the stages that need no model."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dualread.study.costs import Costs
from dualread.study.files import load
from dualread.study.work import STAGES, PlannedStudy, work_of
from tests.once import once
from tests.tiny import build
from tests.workflow.checkout import Checkout

pytestmark = pytest.mark.rest

STATEMENT = "assert True\n"  # what a module does when it is imported counts, although nothing names it
MANIFESTS = ("results/smoke/leakage/MANIFEST.json", "results/smoke/pairs/slake/test/MANIFEST.json")


def _make_manifests(folder: Path) -> None:
    run = Checkout.create(folder).snakemake(*MANIFESTS)
    assert run.returncode == 0, run.text
    assert run.computed() == {"draw_phantom", "build_manifest", "check_leakage", "pair_donors"}


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The smoke study with MANIFESTS and nothing else; no test edits it."""
    return Checkout(folder=once(tmp_path_factory, "manifests", _make_manifests))


@pytest.fixture
def checkout(finished: Checkout, tmp_path: Path) -> Checkout:
    """A copy with finished manifests, including their times, which Snakemake compares."""
    folder = tmp_path / "checkout"
    shutil.copytree(finished.folder, folder, symlinks=True)
    return Checkout(folder=folder)


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    return Checkout.create(tmp_path)


def read_official(checkout):
    """Let the smoke study read SLAKE in the folder `official` of the checkout."""
    entry = "  slake: {source: {phantom: null, folder: official}}\n"
    checkout.edit("workflow/studies/smoke.yaml", "\ndatasets:\n", f"\ndatasets:\n{entry}")


# Before anything is trained, the pictures of all data sets are compared.
_MANIFESTS = {"draw_phantom": 7, "build_manifest": 9, "check_leakage": 1}
_ACTORS = {"pretrain_base": 2, "probe_checkpoint": 2, "train_actor": 12}


def test_snakemake_selects_jobs_only_at_its_start_and_after_a_job_has_finished(fresh):
    targets = [f"results/smoke/phantoms/{name}/MANIFEST.json" for name in ("slake", "vqa_rad", "pmc_vqa")]
    run = fresh.snakemake("--verbose", *targets, cores=1)
    assert run.returncode == 0, run.text
    assert len(run.entries("computed")) == 3
    assert run.text.count("Ready jobs: ") == 3  # three ready jobs, then two, one


def test_the_smoke_study_has_these_jobs(dry):
    run = dry()
    # 2 backbones, 3 seeds in all: 2 bases, 3 of every other actor
    stages = ("generate", "grade", "fit_readers", "score_answers", "compute_metrics", "measure_costs")
    answering = {"base": 2, "rlvr": 3, "rlcr": 3, "dcpo": 3, "vl_calibration": 3}
    per_actor = {f"{stage}_{actor}": n for stage in stages for actor, n in answering.items()}
    per_actor |= {"replay_rlvr": 3}  # no reader needs the states of other actors
    manifests = {**_MANIFESTS, "pair_donors": 4, "summarize_data": 1}
    # Some tables show the base alone, or rlvr; the others, the records and contrasts read the metrics of all actors.
    collected = {"collect_metrics": 1, "collect_metrics_base": 1, "collect_metrics_rlvr": 1, "compare_methods": 1}
    collected["compare_methods_rlvr"] = 1  # with its nulls, for a figure
    tables = {**collected, "build_table": 22, "preview_tables": 1, "copy_table": 22, "copy_preview": 1}
    figures = {"draw_figure": 6, "copy_figure": 6}
    records = {"export_records": 1, "export_answers": 1, "measure_difficulty": 1, "report": 1}
    assert run.jobs() == {**manifests, **_ACTORS, **per_actor, **tables, **figures, **records}
    commands = [line for line in run.text.splitlines() if "dualread.store.run" in line]
    assert len(commands) > 20
    assert max(map(len, commands)) < 500  # a command names the file of its job


def test_only_what_a_target_needs_is_made(dry):
    main = dry("tables/main.tex")
    assert "compare_methods" not in main.jobs()
    assert dry("figures/training.png").jobs() == {**_MANIFESTS, **_ACTORS, "draw_figure": 1, "copy_figure": 1}
    # The actor that most methods read goes before the others.
    blocks = re.findall(r"rule train_actor:\n((?: .+\n)+)", main.text)
    found = [(re.search(r"actor=(\w+)", block), re.search(r"priority: (\d+)", block)) for block in blocks]
    priority = {actor[1]: int(number[1]) for actor, number in found if actor and number}
    assert priority == {"rlvr": 17, "rlcr": 1, "dcpo": 1, "vl_calibration": 1}


def test_an_actor_may_come_as_a_checkpoint(fresh):
    build("qwen3_vl", fresh.folder / "mine")
    checkpoints = {"qwen3-vl-tiny": {17: {"folder": "mine"}}}
    rlvr = {"training": None, "reward": None, "settings": None, "checkpoints": checkpoints}
    (fresh.folder / "mine.yaml").write_text(yaml.safe_dump({"actors": {"rlvr": rlvr}}))
    study = "workflow/studies/micro.yaml mine.yaml"
    jobs = fresh.snakemake("-n", "tables/main.tex", study=study).jobs()
    assert (jobs["copy_checkpoint"], jobs["replay_rlvr"]) == (1, 1)
    assert "train_actor" not in jobs
    target = "results/micro/actors/qwen3-vl-tiny/rlvr/17/MANIFEST.json"
    copied = {("copy_checkpoint", "actors/qwen3-vl-tiny/rlvr/17")}
    assert fresh.snakemake(target, study=study).entries("computed") == copied
    build("qwen3_vl", fresh.folder / "mine", layers=3)  # watched by content
    assert fresh.snakemake(target, study=study).entries("computed") == copied


def test_the_papers_study_can_be_planned_without_a_download(dry):
    jobs = dry(study="workflow/studies/paper.yaml").jobs()
    assert (jobs["copy_checkpoint"], jobs["train_actor_vllm"], jobs["replay_rlvr"]) == (2, 24, 6)
    # seven data sets, none of them there; SLAKE has three splits; four have donors
    assert (jobs["download_dataset"], jobs["build_manifest"], jobs["pair_donors"]) == (7, 9, 4)
    assert "pretrain_base" not in jobs
    # Only a study with a backbone of the paper is compared with it.
    assert (jobs["compare_with_paper"], jobs["copy_comparison"]) == (1, 1)
    assert "compare_with_paper" not in dry().jobs()


def test_a_users_actor_is_read_on_one_gpu_without_training(fresh):
    study = "workflow/studies/one_gpu.yaml"
    run = fresh.snakemake("-n", study=study)
    where = "actors.rlvr.checkpoints.qwen3-vl-2b.17.folder: '../my-actor': no such folder"
    assert run.returncode != 0
    assert where in run.text  # what to fill in is asked for by name
    fresh.edit(study, "../my-actor", "mine")
    (fresh.folder / "mine").mkdir()
    run = fresh.snakemake("-n", "--quiet=host", study=study)
    assert run.actors() == {("qwen3-vl-2b", "base", 0), ("qwen3-vl-2b", "rlvr", 17)}
    jobs = run.jobs()
    assert (jobs["copy_checkpoint"], jobs["build_manifest"], jobs["replay_rlvr"]) == (2, 4, 1)
    assert jobs["compare_with_paper"] == 1  # its backbone is one of the paper's
    assert not {"train_actor", "pretrain_base"} & jobs.keys()


@pytest.mark.long  # the others are run or planned by other tests
@pytest.mark.parametrize("name", ["embedded_full", "slake_tiny", "signals"])
def test_every_study_of_this_repository_can_be_planned(dry, name):
    run = dry(study=f"workflow/studies/{name}.yaml")
    assert run.returncode == 0, run.text


@pytest.mark.parametrize(
    "files", ["micro.yaml", "smoke.yaml", "paper.yaml", "smoke.yaml workflow/selections/dualread.yaml"]
)
def test_a_forecast_counts_the_jobs_of_the_workflow(unedited, dry, files):
    study = f"workflow/studies/{files}"
    jobs: dict[str, int] = {}
    for rule, n in dry(study=study).jobs().items():
        stage = next((stage for stage in STAGES if rule == stage or rule.startswith(f"{stage}_")), rule)
        jobs[stage] = jobs.get(stage, 0) + n
    folder = unedited.folder
    config = load([folder / file for file in study.split()], folder)
    forecast = PlannedStudy(config, Costs(), root=folder, results=folder / "nowhere")
    counted: dict[str, int] = {}
    for row in (row for rows in work_of(forecast) for row in rows):
        counted[row.stage] = counted.get(row.stage, 0) + row.jobs
    assert {stage: n for stage, n in counted.items() if n} == {stage: n for stage, n in jobs.items() if stage in STAGES}


VLLM = "workflow/studies/smoke.yaml workflow/studies/vllm_cpu.yaml"


def shell_commands(text):
    """Return the commands of a dry run, without the variables that all of them get first."""
    lines = [line.removeprefix("Shell command: ") for line in text.splitlines() if line.startswith("Shell command: ")]
    return [re.sub(r"^export [^;]*; ", "", line) for line in lines]


def test_an_environment_is_created_before_its_engine_runs(unedited, dry):
    run = dry(study=VLLM)
    assert (run.jobs()["make_environment"], run.jobs()["generate_rlvr"]) == (1, 3)
    assert "make_environment" not in dry().jobs()
    commands = shell_commands(run.text)
    generate = [shlex.split(line) for line in commands if "-m dualread.store.run generate" in line]
    others = [shlex.split(line) for line in commands if "-m dualread.store.run grade" in line]
    assert len(generate) == len(others) == 14
    assert {(*words[:2],) for words in generate} == {(f"PYTHONPATH={unedited.folder}/lib", "DUALREAD_FORKSERVER=")}
    assert all(words[2].startswith("results/environments/vllm-cpu-") for words in generate)
    assert {words[0] for words in others} == {sys.executable}


def test_a_training_with_rollouts_by_vllm_and_its_facts_are_of_vllms_environment(fresh, dry):
    """Facts hold for the version of transformers that found them, so that such a training has facts of its own."""
    overlay = {"machine": {"vllm": "cpu"}, "backbones": {"qwen3-vl-tiny": {"training": {"rollouts": "vllm"}}}}
    (fresh.folder / "rollouts.yaml").write_text(yaml.safe_dump(overlay))
    study = "workflow/studies/smoke.yaml rollouts.yaml"
    run = fresh.snakemake("-n", "-p", "--quiet=host", study=study)
    before, after = dry().jobs(), run.jobs()
    # Qwen3-VL has two seeds of four actors, and MedGemma one.
    assert (before["train_actor"], before["probe_checkpoint"]) == (12, 2)
    moved = {"make_environment": 1, "probe_checkpoint_vllm": 1, "train_actor_vllm": 8, "train_actor": 4}
    assert after == before | moved
    commands = shell_commands(run.text)
    jobs = [line.split()[2:] for line in commands if line.startswith("PYTHONPATH=")]
    assert all(words[0].startswith("results/environments/vllm-cpu-") for words in jobs)
    assert sorted({words[3] for words in jobs}) == ["probe_checkpoint", "train_actor"]
    planned = [json.loads((fresh.folder / words[4]).read_text()) for words in jobs if words[3] == "train_actor"]
    assert len(planned) == 8
    for job in planned:
        assert job["inputs"]["facts"] == "results/smoke/training_facts/qwen3-vl-tiny/base/0/MANIFEST.json"
        assert job["entries"][0]["spec"]["rollouts"] == {"module": "training.rollouts.vllm"}


def stamp(checkout, study):
    """The stamp file of the study's environment, as `snakemake environments` reports it."""
    run = checkout.snakemake("-n", "-p", "--quiet=host", "environments", study=study)
    return next(line for line in shell_commands(run.text) if line.startswith("echo ")).split()[1]


def test_an_environment_is_named_after_its_lock(fresh):
    before, cuda = stamp(fresh, VLLM), stamp(fresh, VLLM.replace("_cpu", ""))
    fresh.append("envs/vllm-cpu.lock", "# another lock\n")
    after = stamp(fresh, VLLM)
    names = [path.removeprefix("results/environments/").rpartition("-")[0] for path in (before, after, cuda)]
    assert names == ["vllm-cpu", "vllm-cpu", "vllm"]
    assert before != after


def test_an_environment_is_created_once(fresh):
    """The lock file installs nothing, so no package index is needed."""
    for name in ("torch.txt", "vllm-cpu.lock"):
        (fresh.folder / "envs" / name).write_text("")
    made = fresh.snakemake("environments", study=VLLM)
    assert made.returncode == 0, made.text
    ready = fresh.folder / stamp(fresh, VLLM)
    assert ready.exists()
    run = subprocess.run([ready.parent / "bin/python", "-m", "pip", "list"], capture_output=True, text=True)
    assert run.stdout.splitlines()[2].startswith("pip ")
    jobs = fresh.snakemake("-n", study=VLLM).jobs()
    assert "make_environment" not in jobs
    # A changed recipe makes it again, and then everything else is still made (Snakemake 9.27 plans nothing behind an
    # `ancient` input that is made again).
    fresh.edit("rules/environments.smk", "touch {output}", "true; touch {output}")
    assert fresh.snakemake("-n", study=VLLM).jobs() == {**jobs, "make_environment": 1}


def test_a_config_that_is_no_yaml_stops_the_workflow_with_its_line(fresh):
    fresh.append("config.yaml", "\nmore: *netwrok\n")
    line = (fresh.folder / "config.yaml").read_text().splitlines().index("more: *netwrok") + 1
    run = fresh.snakemake("-n")
    assert run.returncode != 0
    assert f"config.yaml: line {line}, column 7: not YAML: found undefined alias 'netwrok'." in run.text
    assert "Snakefile" not in run.text


def test_another_checkouts_library_is_refused(fresh):
    other = Checkout.create(fresh.folder / "other")
    shutil.rmtree(other.folder / "lib")
    (other.folder / "lib").symlink_to(fresh.folder / "lib")
    run = other.snakemake("-n")
    assert run.returncode != 0
    assert "the rules are from here, but the library is" in run.text


def test_a_successful_run_writes_a_lock(finished):
    results = finished.folder / "results/smoke"
    made = {path.parent: json.loads(path.read_text()) for path in results.rglob("MANIFEST.json")}
    expected = {str(folder.relative_to(results)): {n: m[n] for n in ("key", "digest")} for folder, m in made.items()}
    assert json.loads((results / "results.lock").read_text())["targets"] == expected
    assert "pairs/slake/test" in expected


def test_the_output_ends_with_the_failed_jobs(fresh, finished):
    official = fresh.folder / "official"
    shutil.copytree(finished.folder / "results/smoke/phantoms/slake", official)
    (official / "MANIFEST.json").unlink()
    (official / "train.json").chmod(0o644)
    (official / "train.json").write_text("[{]")
    read_official(fresh)
    run = fresh.snakemake("results/smoke/manifests/slake/train/MANIFEST.json")
    assert run.returncode != 0
    assert "Traceback" not in run.text
    assert run.text.count("official/train.json: not JSON") == 1
    # Snakemake itself comes last: that a job failed, and in which rule; where its log is, and the time. Then it says
    # once more that a job failed; a forked process, as here, prints that with Python 3.13 and not with 3.11.
    once_more = "WorkflowError:\nAt least one job did not complete successfully."
    log = "results/smoke/logs/build_manifest/slake/train.log"
    after = run.text.split(f"(log: {log})")[1].strip().removesuffix(once_more)
    assert len(after.strip().splitlines()) <= 6


def test_a_failed_job_runs_again_although_later_results_exist(checkout):
    checkout.append("lib/dualread/data/questions/build.py", "raise ValueError('broken')\n")
    for _ in range(2):  # Snakemake alone would find nothing to do the second time
        run = checkout.snakemake(*MANIFESTS)
        assert run.returncode != 0
        assert "ValueError: broken" in run.text
    checkout.edit("lib/dualread/data/questions/build.py", "raise ValueError('broken')\n", "")
    run = checkout.snakemake(*MANIFESTS)
    assert run.returncode == 0, run.text
    assert run.computed() == set()
    assert checkout.snakemake(*MANIFESTS).did_nothing()


def test_half_written_notes_of_the_workflow_are_replaced(checkout):
    jobs = [*checkout.folder.glob("results/smoke/jobs/**/*.json")]
    assert jobs
    for path in [*jobs, *(checkout.folder / "results/smoke" / name for name in ("study.json", "planned.json"))]:
        path.write_text('{"')
    (checkout.folder / MANIFESTS[1]).unlink()
    run = checkout.snakemake(*MANIFESTS)
    assert run.returncode == 0, run.text
    assert run.entries("hit") == {("pair_donors", "pairs/slake/test")}
    assert "model_slots=" in run.text  # jobs with a model are capped, unless told otherwise


def test_a_comment_a_docstring_a_new_function_and_a_label_recompute_nothing(checkout):
    checkout.append("lib/dualread/data/donors.py", "# a comment\n\n\ndef new():\n    return 1\n")
    checkout.edit("lib/dualread/stages/build_manifest.py", '"""Stage build_manifest: ', '"""Stage build_manifest, ')
    checkout.edit("config.yaml", "label: SLAKE-test", "label: Another name")
    assert checkout.snakemake(*MANIFESTS).did_nothing()


def test_an_edit_is_noticed_although_snakemakes_records_are_lost(checkout):
    shutil.rmtree(checkout.folder / ".snakemake")
    checkout.append("lib/dualread/data/donors.py", STATEMENT)
    run = checkout.snakemake(*MANIFESTS)
    assert run.entries("computed") == {("pair_donors", "pairs/slake/test")}
    assert run.entries("hit") == set()
    assert checkout.snakemake(*MANIFESTS).did_nothing()


def test_a_config_entry_recomputes_what_depends_on_it_and_a_reverted_one_is_a_hit(checkout):
    checkout.edit("config.yaml", "match_on: [modality]", "match_on: [location]")
    assert checkout.snakemake(*MANIFESTS).entries("computed") == {("pair_donors", "pairs/slake/test")}
    checkout.edit("config.yaml", "match_on: [location]", "match_on: [modality]")
    run = checkout.snakemake(*MANIFESTS)
    assert run.entries("computed") == set()
    assert run.entries("hit") == {("pair_donors", "pairs/slake/test")}


def test_an_upstream_change_with_identical_output_recomputes_nothing_else(checkout):
    # Another loader setting with the same meaning: new manifests with the bytes of the old ones.
    checkout.append("lib/dualread/data/questions/build.py", STATEMENT)
    run = checkout.snakemake(*MANIFESTS)
    assert run.computed() == {"build_manifest"}
    assert {stage for stage, _ in run.entries("hit")} == {"check_leakage", "pair_donors"}


def test_everything_that_depends_on_a_repeated_check_is_planned(checkout):
    checkout.append("lib/dualread/data/questions/leakage.py", STATEMENT)
    jobs = checkout.snakemake("-n", "tables/main.tex").jobs()
    assert (jobs["check_leakage"], jobs["train_actor"]) == (1, 12)
    assert "build_manifest" not in jobs


def test_a_study_without_its_official_files_can_be_planned_and_gives_advice(fresh):
    read_official(fresh)
    target = "results/smoke/manifests/slake/test/MANIFEST.json"
    assert fresh.snakemake("-n", target).jobs() == {"download_dataset": 1, "build_manifest": 1}
    run = fresh.snakemake(target)
    assert run.returncode != 0
    assert f"[download_dataset] error: {fresh.folder / 'official'}: there was no such folder" in run.text
