"""Entries of a study that are valid one by one and contradict each other."""

import pytest

from dualread.study import config as config_module
from dualread.study.config import resolve
from tests.study.embedded import EMBEDDED, merged, problems

# A checkpoint for one backbone and seed only.
OWN = {"medgemma-tiny": {17: {"hub": "someone/actor", "revision": "0" * 40}}}

COMES_AS_CHECKPOINTS = {
    "actors": {"rlvr": {"checkpoints": OWN, "training": None, "reward": None, "settings": None}},
    "figures": None,
}

# What a study without the method `base` leaves out.
NO_BASE = {"controls": None, "base_models": None}


def test_states_come_from_the_generation_only_where_the_engine_keeps_them(monkeypatch):
    kept = {"replay": {"from": "generation"}}
    assert resolve(merged(EMBEDDED, kept)).as_mapping()["replay"]["from"] == "generation"
    declared = config_module.plugins.declared
    monkeypatch.setattr(
        config_module.plugins, "declared", lambda *asked: None if asked[2] == "COLLECTS" else declared(*asked)
    )
    assert "replay.from: 'generation': transformers_engine does not keep states while it answers." in problems(kept)
    assert "replay.from: 'replay' is not allowed. Known: generation." in problems({"replay": {"from": "replay"}})


def test_a_hub_needs_a_revision():
    assert "Give both or neither" in problems(
        {"datasets": {"slake": {"source": {"phantom": None, "hub": "owner/name"}}}}
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"study": "store"}, "study: 'store': results/store holds something else."),
        ({"store": "~/store"}, "store: '~/store': nothing puts a home folder in place of ~ here."),
        ({"study": "a", "store": "results/a/store"}, "store: 'results/a/store' lies among the study's own results."),
        ({"datasets": {"slake": {"id": False}}}, "datasets: 0 have `id: true`"),
        ({"datasets": {"slake": {"splits": ["test"]}}}, "datasets.slake.splits: ['test']."),
        (
            {"datasets": {"slake": {"roles": {"train": {"fit": 0.5}}}}},
            "roles.train: the fractions add up to 0.8, expected 1",
        ),
        (
            {"datasets": {"slake": {"select": {"answer_types": ["closed"], "questions": {"open": 3, "closed": 3}}}}},
            "slake.select.questions: ['open'] not among the answer_types ['closed'].",
        ),
        (
            {"datasets": {"slake": {"id": False, "splits": ["test"], "expect_sha256": {"train": "0" * 64}}}},
            "slake.expect_sha256: ['train'] not among the splits ['test'].",
        ),
        ({"datasets": {"slake": {"source": {"folder": "x"}}}}, "source: a phantom and ['folder']"),
        (
            {"phantoms": {"slake": {"images": {"train": None}}}},
            "datasets.slake.splits: phantoms.slake.images has no ['train'], only ['test', 'validation'].",
        ),
        ({"backbones": {"medgemma-tiny": {"source": {"pretrain": None}}}}, "backbones.medgemma-tiny.source"),
        (
            {"actors": {"base": None}, "methods": {"base": None}, "tables": NO_BASE, "figures": None},
            "actors: 0 have neither `training` nor `checkpoints`",
        ),
        (
            {
                "datasets": {"other": {**EMBEDDED["datasets"]["slake"], "id": False}},
                "tables": {"costs": {"datasets": ["other"]}},
            },
            "tables.costs.datasets: ['other']. Add the in-distribution 'slake'.",
        ),
        (
            {"figures": {"training": {"actors": ["rlvr", "base"]}}},
            "figures.training.actors: ['base'] have no `training`",
        ),
        ({"figures": {"counterfactuals": {"methods": ["dualread", "base"]}}}, "they read base, rlvr; a pair shows the"),
        (
            {"figures": {"forest": {"methods": ["dualread", "base"]}}},
            "they read base, rlvr; nulls judge the answers of",
        ),
        ({"figures": {"forest": {"datasets": ["slake"]}}}, "figures.forest.datasets: this figure does not read it."),
        ({"figures": {"counterfactuals": {"datasets": ["pmc_vqa"]}}}, "the test questions of pmc_vqa have no donors."),
        ({"figures": {"training": {"methods": ["rlvr"]}}}, "figures.training.methods: this figure does not read it."),
        (
            {"figures": {"reliability": {"methods": None}}},
            "figures.reliability: has no methods. Expected:",
        ),
        ({"methods": {"psr": {"parents": {"x": "per"}}}}, "methods.psr.parents.x: 'per' comes later."),
        (
            {"methods": {"dualread": {"parents": {"post": None}}}},
            "methods.dualread.parents: ['pre']; the reader 'dualread' builds on pre, post.",
        ),
        ({"methods": {"psr": {"views": ["samples"]}}}, "methods.psr.views: ['samples']; the reader 'psr' reads none."),
        (
            {"methods": {"sc2": {"views": None}}},
            "methods.sc2.views: []; the reader 'self_consistency' reads at least one",
        ),
        ({"tables": {"main": {"methods": ["psr"]}}}, "tables.main: has `methods` and `without`."),
        ({"tables": {"significance": {"method": None}}}, "tables.significance.method: missing. Name the method that"),
        ({"tables": {"main": {"method": "psr"}}}, "tables.main.method: 'psr'; this table compares no method"),
        (
            {"tables": {"significance": {"without": ["dualread"]}}},
            "tables.significance.method: 'dualread' is not a row of the table.",
        ),
        ({"contrasts": {"rlcr": {"baseline": "dualread"}}}, "contrasts.rlcr: 'dualread' is compared with itself."),
        ({"contrasts": {"paired": {"method": "psr", "baseline": "per"}}}, "contrasts.paired: a table has this name"),
        (
            {"contrasts": {"visual": {"datasets": ["slake", "ood6"]}}},
            "contrasts.visual.split: 'validation'; ood6 has none, or is a mean of test sets. Leave ood6 out.",
        ),
        ({"actors": {"rlvr": {"checkpoints": OWN}}}, "actors.rlvr: has `training` and `checkpoints`."),
        (COMES_AS_CHECKPOINTS, "actors.rlvr.checkpoints.qwen3-vl-tiny: none for seed 17, 29, 43."),
        (COMES_AS_CHECKPOINTS, "actors.rlvr.checkpoints.medgemma-tiny: none for seed 29, 43."),
        (
            {"conditions": {"twice": {"image": "donor", "completions": "donor_fixed_prefix", "control": True}}},
            "conditions.twice.completions: 'donor_fixed_prefix' has no completions of its own.",
        ),
        (
            {"methods": {"dualread": {"actor": "base"}}},
            "methods.dualread.parents.pre: 'psr' reads 'rlvr', 'dualread' reads 'base'",
        ),
    ],
)
def test_contradictions_are_explained(changes, expected):
    assert expected in problems(changes)


def test_a_split_that_the_hub_does_not_have_is_named(monkeypatch):
    declared = config_module.plugins.declared
    monkeypatch.setattr(
        config_module.plugins,
        "declared",
        lambda family, name, what: {"test": ("test.csv",)} if what == "HUB_FILES" else declared(family, name, what),
    )
    resolve(EMBEDDED)
    source = {"phantom": None, "hub": "owner/name", "revision": "0" * 40}
    message = problems({"datasets": {"slake": {"source": source}}})
    assert "datasets.slake.splits: ['train', 'validation']; the loader 'slake' has test on the hub." in message
