"""The shards of a small study, and who needs them, written out by hand."""

import pytest

from dualread import plugins
from dualread.schema.replay import PassReading
from dualread.schema.study import Config
from dualread.study.shards import StudyShards
from tests.study.small import SAMPLED, named, read, small


def shards_of(config):
    return StudyShards(Config.model_validate(config))


@pytest.fixture
def config():
    return small()


def test_actors(config):
    shards = shards_of(config)
    assert (shards.in_distribution, shards.base, shards.answering) == ("slake", "base", ["base", "rlvr", "own"])
    assert [shards.seeds("qwen", actor) for actor in ("base", "rlvr", "own")] == [[0], [17, 29], [17, 29]]
    assert [shards.seeds("gemma", actor) for actor in ("base", "rlvr", "own")] == [[0], [43], [43]]  # its own


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


def test_the_pass_that_answers_keeps_the_states_of_greedy_answers_that_are_read(config):
    test, fixed = ("slake", "test", "original"), ("slake", "test", "fixed")
    assert shards_of(config).pass_reading("rlvr", test) is None
    assert not shards_of(config).keeps_states("dualread")
    config["replay"]["from"] = "generation"
    config["conditions"]["donor"]["decoding"] = SAMPLED
    shards = shards_of(config)
    assert shards.pass_reading("rlvr", test) == PassReading(kappa=0.1, middle=False, entropies=False)
    kept = [shard for shard in shards.replayed("rlvr") if shards.pass_reading("rlvr", shard)]
    # Those under `fixed` are forced, and those under `donor` are sampled.
    assert kept == [shard for shard in shards.replayed("rlvr") if shard[2] in ("original", "shuffled")]
    assert shards.pass_reading("rlvr", fixed) is None
    assert shards.pass_reading("base", test) is None  # nobody reads its states
    assert [shards.keeps_states(name) for name in ("psr", "dualread", "base", "own")] == [True, True, False, False]


def test_the_pass_that_answers_keeps_an_inner_layer_where_a_method_reads_it(config):
    config["replay"]["from"] = "generation"
    config["methods"] |= named(saplma=read("rlvr", "saplma"))
    wanted = shards_of(config).pass_reading("rlvr", ("slake", "test", "original"))
    assert wanted == PassReading(kappa=0.1, middle=True, entropies=False)
    config["methods"]["saplma"]["settings"] = {"layer": 0.5}
    assert shards_of(config).depths(["psr", "saplma"]) == {"saplma": 0.5}


def test_no_reader_is_fitted_under_a_control(config):
    config["conditions"]["black"] = {"image": "black", "control": True}
    config["conditions"]["gray"] = {"image": "gray"}
    shown = {
        condition for name, split, condition in shards_of(config).shards("rlvr") if (name, split) == ("slake", "train")
    }
    assert shown == {"original", "gray"}


def test_of_a_view_that_several_read_as_many_samples_count_as_one_of_them_reads(config):
    config["methods"] |= named(
        few=read("own", "self_consistency", views=["samples"], settings={"k": 4}),
        many=read("own", "semantic_uncertainty", views=["samples"], settings={"k": 8}),
        both=read("own", "hac", parents={"confidence": "few", "hallucination": "many"}),
        all=read("own", "self_probing", views=["samples"]),  # whatever their number
        three=read("own", "hac", parents={"confidence": "few", "hallucination": "all"}),
    )
    shards = shards_of(config)
    found = {method: shards.samples_of(method) for method in ("few", "many", "both", "all", "three", "psr")}
    assert found == {
        **{"few": {"samples": 4}, "many": {"samples": 8}, "both": {"samples": 8}},
        **{"all": {}, "three": {}, "psr": {}},
    }


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


def test_a_target_and_groups_add_views_where_they_are_read_alone(config):
    groups = {"by": "entailment", "of": ["samples"], "source": {"hub": "owner/name", "revision": "0" * 40}}
    config["views"] = {"samples": {"decoding": SAMPLED}, "meaning": {"groups": groups}}
    config["methods"] = named(
        entropy=read("rlvr", "semantic_uncertainty", views=["samples", "meaning"], settings={"k": 4}),
        probe=read("rlvr", "linear_probe", parents={"target": "entropy"}, settings={"state": "h_close"}),
    )
    shards = shards_of(config)
    train, views = ("slake", "train", "original"), ["samples", "meaning"]
    assert (shards.fitted_shard("probe"), shards.features("probe")) == (train, {"h_close"})
    assert (shards.fitting_views("probe"), shards.scoring_views("probe")) == (views, [])
    assert (shards.fitting_cost("probe"), shards.fitting_cost("entropy")) == ("$8t$", None)
    read_by_entropy = [shard for shard in shards.scored("entropy") if shard != train]
    assert shards.grouped("rlvr") == [(*shard, "meaning") for shard in (train, *read_by_entropy)]
    assert [view for view in shards.generated("rlvr") if len(view) == 4] == [
        (*shard, "samples") for shard in (train, *read_by_entropy)
    ]
    assert all(len(shard) == 3 for shard in shards.replayed("rlvr"))


def test_views_cover_the_answers_that_a_method_needs_except_those_under_controls(config, monkeypatch):
    declared = {
        "sampled": {"VIEWS": "score", "FITTED_ON": "validation", "FEATURES": ()},
        "self_check": {"VIEWS": "score", "FITTED_ON": None, "FEATURES": ()},
    }
    known = plugins.declared

    def of_readers(family, name, what):
        return declared[name][what] if family == "readers" else known(family, name, what)

    monkeypatch.setattr("dualread.plugins.declared", of_readers)
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


def test_a_view_with_a_measure_is_replayed_and_costs_its_passes(config):
    hidden = {"name": "hidden_core", "settings": {"share": 0.4, "from_depth": 0.25, "to_depth": 0.75}}
    config["views"]["core"] = {"image": "original", "measure": hidden}
    config["methods"]["vauq"] = {
        "label": "VAUQ",
        **read("rlvr", "vauq", views=["core"]),
        "settings": {"alpha": 0.6},
    }
    shards = shards_of(config)
    core = [(*shard, "core") for shard in shards.scored("vauq")]
    assert core
    assert [shard for shard in shards.replayed("rlvr") if len(shard) == 4] == core
    assert (shards.passes_of("vauq"), shards.passes_of("dualread")) == ({"core": 2}, None)
    assert shards.optional_tensors("rlvr") is None  # nothing that was there is replayed again


def test_a_reader_of_another_package_and_of_tensors_that_only_it_needs(config):
    assert shards_of(config).optional_tensors("rlvr") is None
    config["methods"]["entropy"] = {"label": "Entropy", **read("rlvr", "dualread_lm_polygraph.entropy")}
    shards = shards_of(config)
    assert shards.methods_of("rlvr") == ["psr", "p_state", "per", "dualread", "entropy"]
    assert shards.optional_tensors("rlvr") == ("token_entropies",)
    assert shards.optional_tensors("own") is None


def test_states_of_single_images_are_replayed_where_a_method_reads_them(config):
    config["replay"]["from"] = "generation"
    test = ("slake", "test", "original")
    assert shards_of(config).pass_reading("rlvr", test) is not None
    for k in (2, 1):
        settings = {"state": f"h_image_{k}", "l2": 0.1, "learning_rate": 0.1, "steps": 1}
        config["methods"][f"image_{k}"] = {"label": f"{k}", **read("rlvr", "linear_probe"), "settings": settings}
    shards = shards_of(config)
    assert shards.optional_tensors("rlvr") == ("h_image_1", "h_image_2")
    assert shards.pass_reading("rlvr", test) is None
    config["conditions"]["without"] = {"image": "none"}
    assert ("slake", "test", "without") in shards_of(config).reported("rlvr")
    assert ("slake", "test", "without") not in shards_of(config).scored("image_1")
