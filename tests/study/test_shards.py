"""What a small study implies, written out."""

import pytest

from dualread.study.shards import Plan

GREEDY = {"temperature": 0.0, "top_p": 1.0, "n_samples": 1, "max_completion_tokens": 64}
SAMPLED = GREEDY | {"temperature": 1.0, "n_samples": 8}
EVERY_SPLIT = ["train", "validation", "test"]


@pytest.fixture
def config():
    return {
        "seeds": [17, 29],
        "backbones": {"qwen": {}, "gemma": {"seeds": [43]}},
        "tables": {"all": {}, "main": {"without": ["psr", "p_state"]}, "some": {"methods": ["dualread", "base"]}},
        "datasets": {
            "slake": {"id": True, "splits": EVERY_SPLIT, "pairing": {"splits": ["test"]}, "prompt": "shared"},
            "pmc": {"splits": ["test"], "prompt": "option_visible"},
        },
        "actors": {
            "base": {},
            "rlvr": {"training": "grpo", "reward": "rlvr"},
            "own": {"checkpoints": {}, "prompt": "vl_calibration", "contract": "dual", "max_completion_tokens": 512},
            "unread": {"training": "grpo", "reward": "rlvr"},
        },
        "generation": {"decoding": GREEDY},
        "conditions": {
            "original": {"image": "original"},
            "donor": {"image": "donor"},
            "fixed": {"image": "donor", "completions": "original", "control": True, "actors": ["rlvr"]},
            "shuffled": {"image": "shuffled", "control": True, "datasets": ["pmc"]},
        },
        "views": {
            "p_true": {"prompt": "p_true", "choices": {"words": ["Yes", "No"]}},
            "samples": {"decoding": SAMPLED},
        },
        "methods": {
            "base": {"actor": "base", "reader": "verbalized"},
            "own": {"actor": "own", "reader": "verbalized"},
            "psr": {"actor": "rlvr", "reader": "psr"},
            "p_state": {"actor": "rlvr", "reader": "p_state"},
            "per": {"actor": "rlvr", "reader": "p_visual", "parents": {"state": "p_state"}},
            "dualread": {"actor": "rlvr", "reader": "dualread", "parents": {"pre": "psr", "post": "per"}},
        },
    }


def test_actors(config):
    plan = Plan(config)
    assert (plan.in_distribution, plan.base, plan.answering) == ("slake", "base", ["base", "rlvr", "own"])
    assert [plan.seeds("qwen", actor) for actor in ("base", "rlvr", "own")] == [[0], [17, 29], [17, 29]]
    assert [plan.seeds("gemma", actor) for actor in ("base", "rlvr", "own")] == [[0], [43], [43]]  # its own
    assert [plan.contract(actor) for actor in ("base", "rlvr", "own")] == ["single", "single", "dual"]


def test_a_table_shows_a_new_method_unless_it_says_otherwise(config):
    config["methods"]["new"] = {"actor": "rlvr", "reader": "verbalized"}
    plan = Plan(config)
    assert plan.rows("all") == list(config["methods"])
    assert plan.rows("main") == ["base", "own", "per", "dualread", "new"]
    assert plan.rows("some") == ["dualread", "base"]


def test_contrasts(config):
    config["contrasts"] = {
        "default": {"method": "dualread", "baseline": "own"},
        "visual": {
            "method": "per",
            "baseline": "p_state",
            "datasets": ["slake"],
            "split": "validation",
            "metrics": ["auroc"],
        },
    }
    config["tables"]["main"]["method"] = "dualread"
    default, visual, main = Plan(config).contrasts()
    places = ["slake", "ood6", "ood_ccg"]
    assert default == {
        **{"name": "default", "method": "dualread", "baselines": ["own"], "datasets": places, "split": "test"}
    }
    assert visual == {
        **{"name": "visual", "method": "per", "baselines": ["p_state"], "metrics": ["auroc"]},
        **{"datasets": ["slake"], "split": "validation"},
    }
    assert main == {
        **{"name": "main", "method": "dualread", "baselines": ["base", "own", "per"]},
        **{"datasets": ["slake", "pmc", "ood6", "ood_ccg"], "split": "test"},
    }


def test_a_table_shows_all_data_sets_or_those_that_it_lists(config):
    config["tables"]["some"]["datasets"] = ["pmc"]
    assert (Plan(config).shown("all"), Plan(config).shown("some")) == (["slake", "pmc"], ["pmc"])


def test_a_table_shows_all_seeds_of_a_backbone_or_those_that_it_lists(config):
    backbone, seeds = next(iter(config["backbones"])), config["seeds"]
    config["tables"]["some"]["seeds"] = [seeds[-1], 5]
    plan = Plan(config)
    assert (plan.shown_seeds("all", backbone), plan.shown_seeds("some", backbone)) == (seeds, [seeds[-1]])
    config["backbones"][backbone]["seeds"] = [5, 7]
    assert (plan.shown_seeds("all", backbone), plan.shown_seeds("some", backbone)) == ([5, 7], [5])


def test_what_a_reader_reads_includes_what_its_parents_read(config):
    plan = Plan(config)
    assert not plan.reads("own", "FEATURES")
    assert plan.reads("dualread", "FEATURES")  # it declares none itself
    assert plan.reads("dualread", "FITTED_ON") == "train"
    assert plan.fitted_shard("own") == plan.fitted_shard("psr") == ("slake", "train", "original")


def test_shards(config):
    plan = Plan(config)
    pmc = [("pmc", "test", "original"), ("pmc", "test", "shuffled")]
    validation, test = ("slake", "validation", "original"), ("slake", "test", "original")
    assert plan.shards("base") == [validation, test, ("slake", "test", "donor"), *pmc]
    assert plan.shards("rlvr") == [
        ("slake", "train", "original"),
        validation,
        test,
        ("slake", "test", "donor"),
        ("slake", "test", "fixed"),
        *pmc,
    ]
    assert plan.reported("rlvr") == plan.shards("rlvr")[1:]
    assert ("slake", "test", "fixed") not in plan.generated("rlvr")  # its completions are those of `original`
    assert plan.replayed("rlvr") == plan.shards("rlvr")
    assert plan.replayed("base") == []


def test_files_of_the_hub_are_those_of_the_splits(config):
    config["datasets"]["slake"]["loader"] = "slake"
    assert Plan(config).hub_files("slake") == [
        "imgs.zip",
        "test.json",
        "train.json",
        "validate.json",
        "validation.json",
    ]
    config["datasets"]["slake"]["splits"] = ["test"]
    assert Plan(config).hub_files("slake") == ["imgs.zip", "test.json"]


def test_views_are_taken_of_the_answers_that_a_method_needs_and_not_under_controls(config, monkeypatch):
    declared = {
        "sampled": {"VIEWS": "score", "FITTED_ON": "validation", "FEATURES": ()},
        "self_check": {"VIEWS": "score", "FITTED_ON": None, "FEATURES": ()},
    }
    monkeypatch.setattr("dualread.plugins.declared", lambda family, name, what: declared[name][what])
    config["methods"] = {
        "sc2": {"actor": "own", "reader": "sampled", "views": ["samples"]},
        "p_true": {"actor": "rlvr", "reader": "self_check", "views": ["p_true"]},
        "base": {"actor": "base", "reader": "self_check"},
    }
    plan = Plan(config)
    answers = [("slake", "validation", "original"), ("slake", "test", "original"), ("slake", "test", "donor")]
    answers.append(("pmc", "test", "original"))
    assert plan.scored("sc2") == answers
    assert plan.views("own") == [(*shard, "samples") for shard in answers]
    assert plan.views("rlvr") == [(*shard, "p_true") for shard in answers]
    assert plan.fitted_shard("sc2") == ("slake", "validation", "original")
    assert (plan.views_of("sc2", "fit"), plan.views_of("p_true", "fit")) == (["samples"], [])
    shards = [shard for shard in plan.generated("own") if len(shard) == 3]
    assert plan.generated("own") == [*shards, *plan.views("own")]  # a view comes after what it is about


def test_what_a_shard_asks(config):
    plan = Plan(config)
    shared = {"name": "shared", "file": "models/prompts/shared.txt"}
    assert plan.asked("rlvr", ("slake", "test", "donor")) == {
        **{"dataset": "slake", "split": "test", "condition": "donor"},
        **{"image": "donor", "prompt": shared, "decoding": GREEDY},
    }
    forced = plan.asked("rlvr", ("slake", "test", "fixed"))
    assert (forced["image"], forced["completions"]) == ("donor", {"condition": "original"})
    own = plan.asked("own", ("slake", "test", "original"))
    assert own["prompt"]["name"] == "vl_calibration"
    assert own["decoding"]["max_completion_tokens"] == 512  # the actor's own budget
    assert plan.asked("rlvr", ("pmc", "test", "original"))["prompt"]["name"] == "option_visible"


def test_what_a_view_asks(config):
    config["views"]["black"] = {"image": "black"}
    plan = Plan(config)
    asked = plan.asked("own", ("slake", "test", "donor", "p_true"))
    assert asked["condition"] == "donor/p_true"
    assert asked["prompt"]["name"] == "p_true"
    assert asked["places_answer"] == {"contract": "dual"}
    assert asked["choices"] == {"words": ["Yes", "No"]}
    assert "decoding" not in asked
    samples = plan.asked("own", ("slake", "test", "donor", "samples"))
    assert (samples["prompt"]["name"], samples["decoding"]) == ("vl_calibration", SAMPLED)
    assert "places_answer" not in samples
    black = plan.asked("rlvr", ("slake", "test", "donor", "black"))
    assert (black["image"], black["shows"], black["completions"]) == ("black", "donor", {"condition": "donor"})
