"""Studies whose answers are given: which methods they leave out, who has which seed, and what contradicts itself."""

from dualread.study.config import resolve
from dualread.study.files import laid_over
from dualread.study.shards import StudyShards
from tests.study.embedded import EMBEDDED

GIVEN = {"training": None, "reward": None, "settings": None, "answers": {"folder": "../answers"}}


def given(changes=None):
    """The embedded study, with the answers of the actor rlvr given."""
    overlay = {"actors": {"rlvr": GIVEN}, "figures": {"training": None}}
    return laid_over(laid_over(EMBEDDED, overlay), changes or {})


def test_methods_that_read_what_answers_lack_are_left_out_with_the_reason():
    config = resolve(given())
    states = "it reads hidden states or single tokens, which given answers lack"
    assert config.left_out == {
        "rlvr": {
            **dict.fromkeys(("saplma", "bicr", "psr", "p_state", "per"), states),
            "dualread": "it builds on psr, which is left out",
        }
    }
    assert not set(config.left_out["rlvr"]) & set(config.methods)
    assert {"rlvr", "sequence_likelihood", "p_true", "sc8", "question_answer_prior", "base", "dcpo"} <= set(
        config.methods
    )
    assert "cascade" not in config.tables  # it shows nothing but these
    assert "visual" not in config.contrasts
    assert "psr" not in (config.tables["main"].without or [])


def test_likelihoods_of_integers_are_no_service_s_business():
    config = resolve(given({"methods": {"base": {"actor": "rlvr"}}, "tables": {"base_models": None}}))
    assert (
        config.left_out["rlvr"]["base"] == "it reads the likelihoods of integers or options, which services do not give"
    )


def test_given_answers_have_no_seed_and_no_forced_likelihoods():
    shards = StudyShards(resolve(given()))
    assert shards.given == ["rlvr"]
    assert shards.seeds("qwen3-vl-tiny", "rlvr") == [0]
    assert shards.seeds("qwen3-vl-tiny", "dcpo") != [0]
    forced = ("slake", "test", "donor_fixed_prefix")
    assert forced in shards.scored("rlvr")
    assert forced not in shards.scored("sequence_likelihood")
    assert forced not in shards.replayed("rlvr")
    assert not any(view[3] == "black" for view in shards.views("rlvr"))


def test_the_service_knows_the_model_by_its_name():
    service = {"source": {"pretrain": None, "service": "x-1"}, "settings": None}
    others = dict.fromkeys(("base", "rlcr", "dcpo", "vl_calibration"))
    tables = ("channel", "reliability", "ccg_denom", "base_models", "controls", "main", "ood_acc", "calib", "ccg_ood")
    changes = {
        "backbones": {"qwen3-vl-tiny": service},
        "actors": others,
        "methods": others,
        "contrasts": None,
        "tables": dict.fromkeys((*tables, "thresholds")),
        "figures": None,
    }
    config = resolve(given(changes | {"backbones": {"qwen3-vl-tiny": service, "medgemma-tiny": None}}))
    shards = StudyShards(config)
    assert shards.base is None
    assert shards.service("qwen3-vl-tiny", "rlvr").model == "x-1"
    assert shards.service("qwen3-vl-tiny", "rlvr").log_probs
    assert shards.scoring("rlvr", "qwen3-vl-tiny").model == {}
    assert StudyShards(resolve(given())).service("qwen3-vl-tiny", "rlvr").model == "qwen3-vl-tiny"
    without = resolve(laid_over(given(changes), {"methods": {"sequence_likelihood": None}}))
    assert not StudyShards(without).service("medgemma-tiny", "rlvr").log_probs
