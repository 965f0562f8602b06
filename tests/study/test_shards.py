"""The shards of a small study, and who needs them, written out by hand."""

import pytest

from dualread.specs.generation import Choices, Decoding, ShardSpec
from dualread.specs.metrics import Contrast
from dualread.specs.parts import Prompt
from dualread.study.sections import Config
from dualread.study.shards import StudyShards

GREEDY = {"temperature": 0.0, "top_p": 1.0, "n_samples": 1, "max_completion_tokens": 64}
SAMPLED = GREEDY | {"temperature": 1.0, "n_samples": 8}
EVERY_SPLIT = ["train", "validation", "test"]


def named(**entries):
    """Entries with a label, which nothing here depends on."""
    return {name: {"label": name, **entry} for name, entry in entries.items()}


def trained():
    return {"training": "grpo", "reward": "rlvr", "settings": {}}


def read(actor, reader, **others):
    return {"group": "", "actor": actor, "reader": reader, **others}


def shards_of(config):
    return StudyShards(Config.model_validate(config))


@pytest.fixture
def config():
    dataset = {"loader": "slake", "source": {"folder": "nowhere"}, "roles": {}, "seed": 0}
    settings = {"dtype": "float32", "attention": "sdpa", "max_prompt_tokens": 9}
    backbone = {"source": {"hub": "owner/name", "revision": "0" * 40}, "settings": settings}
    checkpoints = {"gemma": {43: {"folder": "nowhere"}}}
    return {
        **{"study": "small", "store": "store", "seeds": [17, 29]},
        "machine": {"model_job_memory_gb": 1.0, "vllm": "cpu"},
        "backbones": named(qwen=backbone, gemma={**backbone, "seeds": [43]}),
        "tables": {"all": {}, "main": {"without": ["psr", "p_state"]}, "some": {"methods": ["dualread", "base"]}},
        "datasets": named(
            slake={
                **dataset,
                **{"id": True, "splits": EVERY_SPLIT, "prompt": "shared"},
                "pairing": {"splits": ["test"], "match_on": []},
            },
            pmc={**dataset, "splits": ["test"], "prompt": "option_visible"},
        ),
        "actors": named(
            base={},
            rlvr=trained(),
            own={
                **{"checkpoints": checkpoints, "prompt": "vl_calibration"},
                **{"contract": "dual", "max_completion_tokens": 512},
            },
            unread=trained(),
        ),
        "generation": {"engine": "transformers_engine", "decoding": GREEDY},
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
        "replay": {
            **{"settings": {"batch_size": 1}, "kappa": 0.1},
            "agreement": dict.fromkeys(
                ("max_mean_log_prob_difference", "max_argmax_mismatch_share", "argmax_tolerance"), 0.0
            ),
        },
        "methods": named(
            base=read("base", "verbalized"),
            own=read("own", "verbalized"),
            psr=read("rlvr", "psr"),
            p_state=read("rlvr", "p_state"),
            per=read("rlvr", "p_visual", parents={"state": "p_state"}),
            dualread=read("rlvr", "dualread", parents={"pre": "psr", "post": "per"}),
        ),
        "metrics": {"bootstrap": {"replicates": 0}, "target_risk_percent": []},
    }


def test_actors(config):
    shards = shards_of(config)
    assert (shards.in_distribution, shards.base, shards.answering) == ("slake", "base", ["base", "rlvr", "own"])
    assert [shards.seeds("qwen", actor) for actor in ("base", "rlvr", "own")] == [[0], [17, 29], [17, 29]]
    assert [shards.seeds("gemma", actor) for actor in ("base", "rlvr", "own")] == [[0], [43], [43]]  # its own
    assert [shards.contract(actor) for actor in ("base", "rlvr", "own")] == ["single", "single", "dual"]


def test_a_table_shows_a_new_method_unless_it_says_otherwise(config):
    config["methods"]["new"] = {"label": "New", **read("rlvr", "verbalized")}
    shards = shards_of(config)
    assert shards.rows("all") == list(config["methods"])
    assert shards.rows("main") == ["base", "own", "per", "dualread", "new"]
    assert shards.rows("some") == ["dualread", "base"]


def test_a_table_reads_the_metrics_of_one_actor_where_it_shows_no_other(config):
    own = {"methods": ["psr", "dualread"]}
    config["tables"] = {"main": {"methods": ["dualread", "base"]}, "cascade": own, "intervals": own}
    shards = shards_of(config)
    assert [shards.only_actor(table) for table in config["tables"]] == [None, "rlvr", None]


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
    default, visual, main = shards_of(config).contrasts()
    places = ("slake", "ood6", "ood_ccg")
    expected = Contrast(name="default", method="dualread", baselines=("own",), datasets=places, split="test")
    assert default == expected
    where = {"datasets": ("slake",), "split": "validation", "metrics": ("auroc",)}
    assert visual == Contrast(name="visual", method="per", baselines=("p_state",), **where)
    others = {"baselines": ("base", "own", "per"), "datasets": ("slake", "pmc", "ood6", "ood_ccg")}
    assert main == Contrast(name="main", method="dualread", **others, split="test")


def test_a_table_shows_all_data_sets_or_those_that_it_lists(config):
    config["tables"]["some"]["datasets"] = ["pmc"]
    assert (shards_of(config).shown("all"), shards_of(config).shown("some")) == (["slake", "pmc"], ["pmc"])


def test_a_table_shows_all_seeds_of_a_backbone_or_those_that_it_lists(config):
    backbone, seeds = next(iter(config["backbones"])), config["seeds"]
    config["tables"]["some"]["seeds"] = [seeds[-1], 5]
    shards = shards_of(config)
    assert (shards.shown_seeds("all", backbone), shards.shown_seeds("some", backbone)) == (seeds, [seeds[-1]])
    config["backbones"][backbone]["seeds"] = [5, 7]
    shards = shards_of(config)
    assert (shards.shown_seeds("all", backbone), shards.shown_seeds("some", backbone)) == ([5, 7], [5])


def test_what_a_reader_reads_includes_what_its_parents_read(config):
    shards = shards_of(config)
    assert not shards.reads("own", "FEATURES")
    assert shards.reads("dualread", "FEATURES")  # it declares none, its parents do
    assert shards.reads("dualread", "FITTED_ON") == "train"
    assert shards.fitted_shard("own") == shards.fitted_shard("psr") == ("slake", "train", "original")


def test_shards(config):
    shards = shards_of(config)
    pmc = [("pmc", "test", "original"), ("pmc", "test", "shuffled")]
    validation, test = ("slake", "validation", "original"), ("slake", "test", "original")
    assert shards.shards("base") == [validation, test, ("slake", "test", "donor"), *pmc]
    assert shards.shards("rlvr") == [
        ("slake", "train", "original"),
        validation,
        test,
        ("slake", "test", "donor"),
        ("slake", "test", "fixed"),
        *pmc,
    ]
    assert shards.reported("rlvr") == shards.shards("rlvr")[1:]
    assert ("slake", "test", "fixed") not in shards.generated("rlvr")  # its completions are those of `original`
    assert shards.replayed("rlvr") == shards.shards("rlvr")
    assert shards.replayed("base") == []


def test_only_the_files_of_the_used_splits_are_downloaded(config):
    config["datasets"]["slake"]["loader"] = "slake"
    assert shards_of(config).hub_files("slake") == [
        "imgs.zip",
        "test.json",
        "train.json",
        "validate.json",
        "validation.json",
    ]
    config["datasets"]["slake"]["splits"] = ["test"]
    assert shards_of(config).hub_files("slake") == ["imgs.zip", "test.json"]


def test_views_cover_the_answers_that_a_method_needs_except_those_under_controls(config, monkeypatch):
    declared = {
        "sampled": {"VIEWS": "score", "FITTED_ON": "validation", "FEATURES": ()},
        "self_check": {"VIEWS": "score", "FITTED_ON": None, "FEATURES": ()},
    }
    monkeypatch.setattr("dualread.plugins.declared", lambda family, name, what: declared[name][what])
    config["methods"] = named(
        sc2=read("own", "sampled", views=["samples"]),
        p_true=read("rlvr", "self_check", views=["p_true"]),
        base=read("base", "self_check"),
    )
    shards = shards_of(config)
    answers = [("slake", "validation", "original"), ("slake", "test", "original"), ("slake", "test", "donor")]
    answers.append(("pmc", "test", "original"))
    assert shards.scored("sc2") == answers
    assert shards.views("own") == [(*shard, "samples") for shard in answers]
    assert shards.views("rlvr") == [(*shard, "p_true") for shard in answers]
    assert shards.fitted_shard("sc2") == ("slake", "validation", "original")
    assert (shards.views_of("sc2", "fit"), shards.views_of("p_true", "fit")) == (["samples"], [])
    answered = [shard for shard in shards.generated("own") if len(shard) == 3]
    assert shards.generated("own") == [*answered, *shards.views("own")]  # a view comes after what it is about


def test_a_reader_of_another_environment_and_of_tensors_that_only_it_needs(config):
    assert shards_of(config).by_environment("rlvr") == {"": ["psr", "p_state", "per", "dualread"]}
    assert shards_of(config).optional_tensors("rlvr") is None
    config["methods"]["entropy"] = {"label": "Entropy", **read("rlvr", "lm_polygraph_entropy")}
    shards = shards_of(config)
    assert shards.by_environment("rlvr") == {"": ["psr", "p_state", "per", "dualread"], "estimators": ["entropy"]}
    assert shards.optional_tensors("rlvr") == ("token_entropies",)
    assert shards.optional_tensors("own") is None


def test_what_is_asked_in_a_shard(config):
    shards = shards_of(config)
    assert shards.asked("rlvr", ("slake", "test", "donor")) == ShardSpec(
        dataset="slake",
        split="test",
        condition="donor",
        image="donor",
        prompt=Prompt(name="shared", file="models/prompts/shared.txt"),
        decoding=Decoding(**GREEDY),
    )
    forced = shards.asked("rlvr", ("slake", "test", "fixed"))
    assert (forced.image, forced.completions) == ("donor", "original")
    own = shards.asked("own", ("slake", "test", "original"))
    assert own.prompt.name == "vl_calibration"
    assert own.decoding.max_completion_tokens == 512  # the actor's own budget
    assert shards.asked("rlvr", ("pmc", "test", "original")).prompt.name == "option_visible"


def test_what_is_asked_in_a_view(config):
    config["views"]["black"] = {"image": "black"}
    shards = shards_of(config)
    asked = shards.asked("own", ("slake", "test", "donor", "p_true"))
    assert asked.condition == "donor/p_true"
    assert asked.prompt.name == "p_true"
    assert asked.answer_contract == "dual"
    assert asked.choices == Choices(words=("Yes", "No"))
    assert asked.decoding is None
    samples = shards.asked("own", ("slake", "test", "donor", "samples"))
    assert (samples.prompt.name, samples.decoding) == ("vl_calibration", Decoding(**SAMPLED))
    assert samples.answer_contract is None
    black = shards.asked("rlvr", ("slake", "test", "donor", "black"))
    assert (black.image, black.shows, black.completions) == ("black", "donor", "donor")
