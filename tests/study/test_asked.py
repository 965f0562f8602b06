"""What actors are asked in the shards and views of a small study, written out by hand."""

import pytest

from dualread.schema.answers import Choices, Decoding, ShardSpec
from dualread.schema.base import Prompt
from dualread.schema.study import Config
from dualread.study.asked import contract_of, shard_spec
from tests.specs import changed, contract, image, measure
from tests.study.small import GREEDY, SAMPLED, small


def asked_of(config):
    return lambda actor, shard: shard_spec(Config.model_validate(config), actor, shard)


@pytest.fixture
def config():
    return small()


def test_the_form_of_completions(config):
    study = Config.model_validate(config)
    found = [contract_of(study, actor, "slake", "original") for actor in ("base", "rlvr", "own")]
    assert found == ["single", "single", "dual"]


def test_what_is_asked_in_a_shard(config):
    asked = asked_of(config)
    assert asked("rlvr", ("slake", "test", "donor")) == ShardSpec(
        dataset="slake",
        split="test",
        condition="donor",
        image=image("donor"),
        prompt=Prompt(name="shared", file="models/prompts/shared.txt"),
        decoding=Decoding(**GREEDY),
    )
    forced = asked("rlvr", ("slake", "test", "fixed"))
    assert (forced.image, forced.completions) == (image("donor"), "original")
    own = asked("own", ("slake", "test", "original"))
    assert own.prompt.name == "vl_calibration"
    assert own.decoding.max_completion_tokens == 512  # the actor's own budget
    assert asked("rlvr", ("pmc", "test", "original")).prompt.name == "option_visible"


def test_what_is_asked_in_a_view(config):
    config["views"]["black"] = {"image": "black"}
    hidden = {"share": 0.4, "from_depth": 0.25, "to_depth": 0.75}
    config["views"]["core"] = {"image": "black", "measure": {"name": "hidden_core", "settings": hidden}}
    drawn = {name: value for name, value in SAMPLED.items() if name != "max_completion_tokens"}
    config["views"]["drawn"] = {"image": "black", "draws": 2, "decoding": drawn}
    config["generation"]["decoding"] = {**GREEDY, "max_completion_tokens": 37}
    asked = asked_of(config)
    p_true = asked("own", ("slake", "test", "donor", "p_true"))
    assert p_true.condition == "donor/p_true"
    assert p_true.prompt.name == "p_true"
    assert p_true.answer_contract == contract("dual")
    assert p_true.choices == Choices(words=["Yes", "No"])
    assert p_true.decoding is None
    samples = asked("own", ("slake", "test", "donor", "samples"))
    assert (samples.prompt.name, samples.decoding) == ("vl_calibration", Decoding(**SAMPLED))
    assert samples.answer_contract is None
    black = asked("rlvr", ("slake", "test", "donor", "black"))
    assert (black.image, black.shows, black.completions) == (image("black"), image("donor"), "donor")
    drawn = asked("rlvr", ("slake", "test", "donor", "drawn"))  # as long as an answer, where the view says nothing
    assert drawn.decoding == Decoding(**{**SAMPLED, "max_completion_tokens": 37})
    core = asked("rlvr", ("slake", "test", "donor", "core"))
    assert (core.measure, core.completions) == (measure("hidden_core", **hidden), "donor")
    assert core == changed(black, condition="donor/core", measure=core.measure)
