"""Which GPUs a training takes for its rollouts, and which facts it accepts."""

import json
import os

import pytest
from tests import specs
from tests.specs import changed
from transformers import __version__

from dualread.errors import ArtifactError, ConfigError
from dualread.stages.train_actor import _facts
from dualread.store.key import Action
from dualread.store.manifest import Manifest
from dualread.training import job


@pytest.fixture
def gpus(monkeypatch):
    """Return a function that says which GPUs rollouts get, of a machine and in a process of a training."""

    def of(n, visible, processes=1, rank=0):
        monkeypatch.setattr(job, "visible_gpus", lambda: visible)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "all")
        monkeypatch.setenv("LOCAL_WORLD_SIZE", str(processes))
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        return job._rollout_gpus({"rollout_gpus": n} if n else {})

    return of


def test_an_actor_may_draw_as_another_one(assignment):
    def drawn(actor, **settings):
        spec = changed(assignment.spec, actor=actor, settings={**assignment.spec.settings, **settings})
        spec = changed(spec, reward=specs.training("dcpo", "dcpo").reward)
        return changed(assignment, spec=spec).job().seed

    assert drawn("signal", draws_as="rlvr") == drawn("rlvr") != drawn("signal")


def test_every_process_has_gpus_of_its_own_behind_those_of_the_trainers(gpus):
    assert gpus(0, ["4", "5"]) == []
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "all"
    assert gpus(2, ["4", "5", "6"]) == ["5", "6"]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "4"  # transformers would train on all that it sees
    assert [gpus(2, list("abcdef"), processes=2, rank=rank) for rank in (0, 1)] == [["c", "d"], ["e", "f"]]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "all"
    assert gpus(2, []) == ["", ""]  # on CPUs, as many processes


def test_too_few_gpus_are_refused(gpus):
    message = r"rollout_gpus: 2, but this machine has 5 GPU\(s\)\. Expected 6: for each of 2"
    with pytest.raises(ConfigError, match=message):
        gpus(2, list("abcde"), processes=2)


@pytest.mark.parametrize(("version", "is_right"), [(__version__, True), ("5.1.0", False)])
def test_facts_of_another_version_of_transformers_are_refused(tmp_path, version, is_right):
    (tmp_path / "facts.json").write_text(json.dumps({"facts": {}}))
    packages = {"transformers": version}
    action = Action(stage="probe_checkpoint", code="0" * 64, spec={}, inputs={}, packages=packages)
    files = {"facts.json": {"sha256": "0" * 64, "size": 1}}
    (tmp_path / "MANIFEST.json").write_bytes(Manifest(action=action, files=files).to_bytes())
    if is_right:
        assert _facts(tmp_path) == tmp_path / "facts.json"
    else:
        with pytest.raises(ArtifactError, match=f"found by transformers 5.1.0, but {__version__} trains here"):
            _facts(tmp_path)
    assert _facts(specs.facts()) == specs.facts() / "facts.json"  # nobody recorded which version found these
