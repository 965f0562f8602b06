import pytest

from dualread.apps.plan.storage import Download, disk_of, downloads_of
from dualread.study.config import resolve
from dualread.study.costs import Costs
from dualread.study.work import PlannedStudy
from tests.study.embedded import EMBEDDED, ROOT, merged
from tests.study.test_work import SIZE

HUB = {"hub": "someone/model", "revision": "0123456789ab" + "0" * 28}
LARGE = {"qwen3-vl-tiny": {"source": {"pretrain": None, **HUB}, "size": SIZE}, "medgemma-tiny": None}


def study_of(changes, root=ROOT):
    config = resolve(merged(EMBEDDED, merged({"only": {"datasets": ["slake"]}}, changes)))
    return PlannedStudy(config, Costs(), root=root, results=ROOT / "nowhere")


def test_disk_of_one_tiny_actor():
    kinds = disk_of(study_of({"only": {"methods": ["psr"], "backbones": ["medgemma-tiny"], "seeds": [29]}}))
    # base and RLVR; 172 phantoms; train, validation, and test under original, donor and fixed images
    assert kinds["checkpoints"] == 2 * 7e6
    assert kinds["images"] == 172 * 4000
    replayed = 800 + 192 + 3 * 384
    assert kinds["features"] == kinds["batches, kept for edits"] == replayed * 6 * 128 * 4


def test_states_that_the_generation_keeps_are_stored_twice():
    only = {"methods": ["psr"], "backbones": ["medgemma-tiny"], "seeds": [29]}
    before, after = (disk_of(study_of({"only": only, "replay": replay})) for replay in ({}, {"from": "generation"}))
    # six vectors of 128 numbers per answer to train, validation, and test under original and donor images
    assert after["features"] - before["features"] == (800 + 192 + 2 * 384) * 6 * 128 * 4
    assert after["batches, kept for edits"] == before["batches, kept for edits"]


def test_checkpoints_have_the_size_of_downloaded_or_trained_weights():
    study = study_of({"backbones": LARGE, "only": {"actors": ["rlvr"]}})
    # the base in bfloat16, and three seeds in float32
    assert disk_of(study)["checkpoints"] == pytest.approx(SIZE["parameters"] * (2 + 3 * 4))
    assert not any("trains" in kind for kind in disk_of(study))
    study = study_of({"backbones": LARGE, "actors": {"rlvr": {"settings": {"save_every": 10}}}})
    # two checkpoints of the weights and Adam's two moments, 4 bytes each
    assert disk_of(study)["also, while an actor of qwen3-vl-tiny trains"] == 2 * 3 * 4 * SIZE["parameters"]


def test_an_adapter_is_small_while_it_trains_and_merged_afterwards():
    lora = {"lora": {"rank": 2, "alpha": 4}, "save_every": 10}
    dtype = {"qwen3-vl-tiny": {**LARGE["qwen3-vl-tiny"], "settings": {"dtype": "bfloat16"}}, "medgemma-tiny": None}
    study = study_of({"backbones": dtype, "only": {"actors": ["rlvr"]}, "actors": {"rlvr": {"settings": lora}}})
    # the base and three seeds, all in bfloat16
    assert disk_of(study)["checkpoints"] == pytest.approx(SIZE["parameters"] * (2 + 3 * 2))
    assert not any("qwen3-vl-tiny" in kind and "rlvr" in kind for kind in disk_of(study))


def test_downloads_have_a_size_and_terms_and_an_adapter_brings_its_base():
    given = {"adapter": {**HUB, "hub": "someone/adapter"}, "base": HUB}
    changes = {"backbones": {**LARGE, "qwen3-vl-tiny": {"source": {"pretrain": None, **given}, "size": SIZE}}}
    adapter, base = downloads_of(study_of(changes))
    assert (adapter.where.split()[0], adapter.size) == ("someone/adapter", None)
    assert (base.where.split()[0], base.size) == ("someone/model", 2 * SIZE["parameters"])
    data, model = downloads_of(
        study_of({"backbones": LARGE, "datasets": {"slake": {"source": {"phantom": None, **HUB}}}})
    )
    assert (data.name, data.where, data.size) == ("slake", "someone/model at 0123456789ab", 0.21e9)
    assert data.terms.startswith("CC BY 4.0, Liu et al. 2021")
    assert (model.name, model.size, "license" in model.terms) == ("qwen3-vl-tiny", 2 * SIZE["parameters"], True)


def test_official_files_that_users_provide_and_existing_folders_are_not_downloaded(tmp_path):
    entry = {**EMBEDDED["datasets"]["slake"], "source": {"folder": "nowhere"}, "loader": "table", "id": False}
    entry |= {"splits": ["test"], "roles": {"test": "ood"}, "pairing": {"splits": ["test"], "match_on": []}}
    study = study_of({"datasets": {"mine": {**entry, "settings": {}}}, "only": {"datasets": ["mine"]}})
    (found,) = downloads_of(study)
    assert found == Download(name="mine", where="to be put into nowhere", size=None, terms=found.terms)
    assert found.terms.startswith("Your own data")
    source = {"phantom": None, "folder": "official", "hub": "someone/data", "revision": "0" * 40}
    study = study_of({"datasets": {"slake": {"source": source}}}, tmp_path)
    assert [download.name for download in downloads_of(study)] == ["slake"]
    (tmp_path / "official").mkdir()
    assert list(downloads_of(study)) == []
