"""Names in a study that nothing has: each is listed with the known names, and the nearest one is offered."""

import pytest

from dualread.study import config as config_module
from dualread.study.config import resolve
from tests.study.embedded import EMBEDDED, merged, problems

RECIPE = "backbones.qwen3-vl-tiny.source.pretrain"


def architecture(name):
    return {"source": {"pretrain": {"architecture": {"name": name}}}}


@pytest.mark.parametrize(
    ("changes", "where", "family"),
    [
        ({"backbones": {"qwen3-vl-tiny": architecture("x")}}, f"{RECIPE}.architecture.name", "architectures"),
        ({"views": {"x": {"image": "gray", "measure": {"name": "x"}}}}, "views.x.measure.name", "measures"),
        ({"methods": {"psr": {"reader": "x"}}}, "methods.psr.reader", "readers"),
        ({"tables": {"x": {"methods": ["psr"]}}}, "tables.x", "tables"),
    ],
)
def test_an_unknown_plugin_is_named_with_the_known_ones(changes, where, family):
    known = ", ".join(config_module.plugins.known(family))
    folder = config_module.plugins.package_of(family).replace(".", "/")
    assert f"config.yaml: {where}: 'x': no such plugin in lib/dualread/{folder}. Known: {known}." in problems(changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"methods": {"per": {"parents": {"state": "x"}}}}, "methods.per.parents.state: 'x' is not in methods."),
        ({"tables": {"costs": {"methods": ["x"]}}}, "tables.costs.methods: 'x' is not in methods."),
        ({"conditions": {"donor_fixed_prefix": {"completions": "x"}}}, "completions: 'x' is not in conditions."),
        ({"conditions": {"shuffled_image": {"actors": ["x"]}}}, "conditions.shuffled_image.actors: 'x' is not in"),
        (
            {"tables": {"main": {"datasets": ["x"]}}},
            "tables.main.datasets: 'x' is not in datasets. Known: slake, vqa_rad, ",
        ),
        ({"figures": {"training": {"actors": ["x"]}}}, "figures.training.actors: 'x' is not in actors. Known: base,"),
        ({"figures": {"reliability": {"methods": ["x"]}}}, "figures.reliability.methods: 'x' is not in methods."),
        ({"figures": {"reliability": {"datasets": ["x"]}}}, "figures.reliability.datasets: 'x' is not in datasets."),
        ({"contrasts": {"rlcr": {"method": "x"}}}, "contrasts.rlcr.method: 'x' is not in methods."),
        ({"contrasts": {"rlcr": {"baseline": "x"}}}, "contrasts.rlcr.baseline: 'x' is not in methods."),
        (
            {"contrasts": {"rlcr": {"datasets": ["slake", "ood6", "ood_ccg", "x"]}}},
            "contrasts.rlcr.datasets: 'x' is not in datasets. Known: slake, vqa_rad, ",
        ),
        ({"actors": {"rlcr": {"settings": {"draws_as": "x"}}}}, "actors.rlcr.settings.draws_as: 'x' is not in actors."),
        ({"metrics": {"changed_from": "x"}}, "metrics.changed_from: 'x' is not in actors. Known: base, rlvr, "),
        ({"tables": {"significance": {"method": "x"}}}, "tables.significance.method: 'x' is not in methods."),
        ({"methods": {"psr": None}}, "methods.dualread.parents.pre: 'psr' is not in methods."),
    ],
)
def test_an_unknown_name_is_listed_with_the_known_ones(changes, expected):
    assert expected in problems(changes)


@pytest.mark.parametrize(
    ("changes", "where", "meant"),
    [
        ({"sedes": [17]}, "sedes", "'seeds'"),
        ({"datasets": {"slake": {"loader": "slak"}}}, "datasets.slake.loader", "'slake'"),
        ({"datasets": {"slake": {"source": {"phantom": "slacke"}}}}, "source.phantom", "'slake'"),
        ({"datasets": {"slake": {"pairing": {"match_on": ["modalty"]}}}}, "pairing.match_on.0", "'modality'"),
        ({"datasets": {"slake": {"roles": {"train": "fitt"}}}}, "roles.train", "'fit'"),
        ({"actors": {"rlvr": {"contract": "singel"}}}, "actors.rlvr.contract", "'single'"),
        ({"methods": {"psr": {"actor": "rlv"}}}, "methods.psr.actor", "'rlvr'"),
        ({"methods": {"psr": {"settings": {"pateince": 3}}}}, "methods.psr.settings.pateince", "'patience'"),
        ({"methods": {"sc2": {"views": ["sample"]}}}, "methods.sc2.views", "'samples'"),
        ({"conditions": {"donor": {"image": "doner"}}}, "conditions.donor.image", "'donor'"),
        ({"only": {"actor": ["rlvr"]}}, "only.actor", "'actors'"),
        ({"only": {"seeds": [16]}}, "only.seeds", "17"),
    ],
)
def test_the_nearest_name_is_offered_wherever_a_name_is_unknown(changes, where, meant):
    (line,) = (line for line in problems(changes).splitlines() if where in line)
    assert line.endswith(f"Did you mean {meant}?")


def test_the_prompts_that_a_base_is_pretrained_on_are_checked_too():
    training = {"mixture": {"sharde": 0.1}}
    changes = {"backbones": {"medgemma-tiny": {"source": {"pretrain": {"training": training}}}}}
    assert "medgemma-tiny.source.pretrain.training.mixture: 'sharde': no such file" in problems(changes)


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


def test_states_come_from_the_generation_only_where_the_engine_keeps_them(monkeypatch):
    kept = {"replay": {"from": "generation"}}
    assert resolve(merged(EMBEDDED, kept)).as_mapping()["replay"]["from"] == "generation"
    declared = config_module.plugins.declared
    monkeypatch.setattr(
        config_module.plugins, "declared", lambda *asked: None if asked[2] == "COLLECTS" else declared(*asked)
    )
    assert "replay.from: 'generation': transformers_engine does not keep states while it answers." in problems(kept)
    assert "replay.from: 'replay' is not allowed. Known: generation." in problems({"replay": {"from": "replay"}})
