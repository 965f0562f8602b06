"""Two checkouts run one study at the same time with one store and two GPUs; test_smoke.py compares bytes."""

import re

import pytest

from tests.workflow.checkout import Checkout

TABLE = "tables/main.tex"
ON_A_GPU = {"pretrain_base", "probe_checkpoint", "train_actor", "generate_rlvr", "replay_rlvr"}
ON_A_CPU = {"build_manifest", "check_leakage", "grade_rlvr", "fit_readers_rlvr", "score_answers_rlvr"}
ON_A_CPU |= {"compute_metrics_rlvr"}


@pytest.fixture(scope="module")
def checkouts(submit, tmp_path_factory):
    """Both checkouts, finished."""
    found = [Checkout.create(tmp_path_factory.mktemp(name)) for name in ("one", "other")]
    heads = [submit(checkout, TABLE) for checkout in found]
    for head in heads:
        assert head.wait() == 0, head.text
    return found


@pytest.fixture(scope="module")
def tasks(slurm, checkouts):
    """{rule: its tasks}."""
    by_rule = {}
    for task in slurm.tasks():
        by_rule.setdefault(re.match(r"rule_(\w+?)(?:_wildcards_|$)", task.about)[1], []).append(task)
    return by_rule


def test_two_writers_of_one_store_do_no_harm(checkouts, store):
    assert not (store / "differences.jsonl").exists()
    assert not (store / "damaged").exists()
    assert not list((store / "tmp").iterdir())
    manifests = [
        {path.relative_to(c.folder): path.read_bytes() for path in c.folder.glob("results/cluster/**/MANIFEST.json")}
        for c in checkouts
    ]
    assert len(manifests[0]) > 30
    assert manifests[0] == manifests[1]


def test_only_stages_with_a_model_get_a_gpu_and_small_ones_run_locally(tasks):
    assert {rule for rule, own in tasks.items() if any(task.devices != "none" for task in own)} == ON_A_GPU
    assert tasks.keys() == ON_A_GPU | ON_A_CPU
    assert {task.devices for rule in ON_A_GPU for task in tasks[rule]} == {"0", "1"}


def test_jobs_that_run_at_once_never_share_a_gpu(tasks):
    on_gpu = [task for rule in ON_A_GPU for task in tasks[rule]]
    at_once = [
        (one, other)
        for one in on_gpu
        for other in on_gpu
        if one.job < other.job and one.start < other.end and other.start < one.end
    ]
    assert at_once  # otherwise this shows nothing
    assert not [pair for pair in at_once if pair[0].devices == pair[1].devices]


def test_a_second_run_submits_nothing(checkouts, submit):
    head = submit(checkouts[0], TABLE)
    assert head.wait() == 0
    assert "Nothing to be done" in head.text
