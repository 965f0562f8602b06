"""`only`: selected entries stay as they are, unneeded ones are left out, impossible selections are explained."""

import pytest

from dualread.errors import ConfigError
from dualread.study.config import resolve, without_nulls
from dualread.study.shards import StudyShards
from tests.study.embedded import EMBEDDED, ROOT, merged

ELSEWHERE = {
    **EMBEDDED["datasets"]["slake"],
    **{"label": "Elsewhere", "id": False, "splits": ["test"], "roles": {"test": "ood"}},
}
WITH_OOD = {
    "datasets": {"elsewhere": ELSEWHERE},
    "tables": {"costs": {"datasets": ["slake", "elsewhere"]}},
    "conditions": {"shuffled_image": {"datasets": ["elsewhere"]}},
}


def typed(only, changes=None):
    return resolve(merged(EMBEDDED, {**(changes or {}), "only": only}))


def selected(only, changes=None):
    """The selected study as plain mappings, without what it leaves out."""
    return typed(only, changes).as_mapping()


def test_without_a_selection_the_study_is_complete():
    assert typed(None) == typed({}) == resolve(EMBEDDED)
    assert selected(None) == selected({}) == without_nulls(EMBEDDED)


def test_selected_seeds_hold_for_every_backbone():
    study = selected({"seeds": [29, 17]}, {"backbones": {"medgemma-tiny": {"seeds": [17, 43]}}})
    assert study["seeds"] == [17, 29]  # in the study's order
    assert study["backbones"]["medgemma-tiny"]["seeds"] == [17]


def test_a_table_of_a_seed_that_is_not_selected_is_left_out():
    assert "channel" not in selected({"seeds": [17]})["tables"]
    study = selected({"seeds": [29, 43]}, {"tables": {"channel": {"seeds": [17, 43]}}})
    assert study["tables"]["channel"]["seeds"] == [43]


def test_a_backbone_without_a_selected_seed_is_left_out():
    study = selected({"seeds": [17]}, {"backbones": {"medgemma-tiny": {"seeds": [43]}}})
    assert list(study["backbones"]) == ["qwen3-vl-tiny"]


def test_selected_entries_are_the_same_as_in_the_complete_study():
    whole, part = resolve(EMBEDDED), typed({"backbones": ["medgemma-tiny"]})
    shards_of_whole, shards_of_part = StudyShards(whole), StudyShards(part)
    for actor in shards_of_whole.answering:
        assert shards_of_whole.generated(actor) == shards_of_part.generated(actor)
    whole, study = whole.as_mapping(), part.as_mapping()
    assert study["backbones"] == {"medgemma-tiny": whole["backbones"]["medgemma-tiny"]}
    rest = set(whole) - {"backbones"}
    assert {key: study[key] for key in rest} == {key: whole[key] for key in rest}


def test_selecting_an_actor_keeps_its_methods_and_the_base():
    study = selected({"actors": ["rlvr"]})
    assert list(study["actors"]) == ["base", "rlvr"]
    assert {method["actor"] for method in study["methods"].values()} == {"rlvr"}
    assert StudyShards(typed({"actors": ["rlvr"]})).answering == ["rlvr"]
    assert study["figures"]["training"] == {"actors": ["rlvr"]}
    assert study["figures"]["counterfactuals"] == {"methods": ["dualread", "rlvr"]}
    assert study["figures"]["reliability"] == {"methods": ["rlvr", "saplma", "bicr", "dualread"]}
    assert study["tables"]["controls"]["without"] == [
        "p_true", "self_probing", "prompt_ensemble", "sc2", "sc4", "sc8", "semantic_uncertainty", "p_state",
    ]  # fmt: skip


def test_selecting_the_base_leaves_out_conditions_figures_and_tables_of_other_actors():
    study = selected({"actors": ["base"]})
    assert list(study["methods"]) == ["base"]
    assert list(study["conditions"]) == ["original", "donor"]  # only RLVR answers under controls
    assert list(study["figures"]) == ["reliability", "reliability_domains"]  # no training to draw
    assert study["figures"]["reliability"] == {"methods": ["base"]}
    assert not {"cascade", "controls"} & set(study["tables"])  # they show no method of the base
    assert "without" not in study["tables"]["main"]


def test_a_condition_is_left_out_together_with_the_condition_whose_answers_it_forces():
    own = {"image": "donor", "actors": ["rlcr"]}
    forced = {"image": "original", "completions": "mine", "control": True}
    study = selected({"actors": ["rlvr"]}, {"conditions": {"mine": own, "forced": forced}})
    assert list(study["conditions"]) == ["original", "donor", "donor_fixed_prefix", "shuffled_image"]


def test_selecting_a_method_keeps_its_parents_and_its_actor_and_no_other_trained_actor():
    study = selected({"methods": ["dualread"]})
    assert list(study["methods"]) == ["psr", "p_state", "per", "dualread"]
    assert list(study["actors"]) == ["base", "rlvr"]
    assert study["figures"]["training"]["actors"] == ["rlvr"]
    assert study["tables"]["cascade"] == {"methods": ["psr", "p_state", "per", "dualread"]}
    assert study["tables"]["main"] == {"without": ["psr", "p_state", "per"]}


def test_a_transfer_stays_where_the_other_actor_and_all_seeds_do():
    psr = {**EMBEDDED["methods"]["psr"], "group": "Mine"}
    elsewhere = {**psr, "transfer": {"method": "of_base"}}
    changes = {"methods": {"of_base": {**psr, "actor": "base"}, "elsewhere": elsewhere}}
    assert list(selected({"methods": ["elsewhere"]}, changes)["methods"]) == ["of_base", "elsewhere"]
    assert "elsewhere" not in selected({"actors": ["rlvr"]}, changes)["methods"]
    changes["methods"]["elsewhere"] = {**psr, "transfer": {"method": "psr", "seed": "next"}}
    changes["backbones"] = {"medgemma-tiny": {"seeds": [17, 29]}}
    assert "elsewhere" in selected({"actors": ["rlvr"]}, changes)["methods"]
    assert "elsewhere" not in selected({"seeds": [17]}, changes)["methods"]


def test_the_in_distribution_data_set_stays():
    study = selected({"datasets": ["elsewhere"]}, WITH_OOD)
    assert list(study["datasets"]) == ["slake", "elsewhere"]
    study = selected({"datasets": ["slake"]}, WITH_OOD)
    assert list(study["datasets"]) == ["slake"]
    assert "reliability_domains" not in study["figures"]
    assert study["figures"]["risk_coverage"]["datasets"] == ["slake"]
    assert study["tables"]["costs"] == {"datasets": ["slake"]}
    assert "shuffled_image" not in study["conditions"]


def test_checkpoints_of_other_backbones_are_left_out():
    of = {seed: {"hub": "someone/actor", "revision": "0" * 40} for seed in (17, 29, 43)}
    own = {"checkpoints": {"qwen3-vl-tiny": of, "medgemma-tiny": of}, "training": None, "reward": None}
    changes = {"actors": {"rlvr": {**own, "settings": None}}, "figures": None}
    study = selected({"backbones": ["medgemma-tiny"]}, changes)
    assert study["actors"]["rlvr"]["checkpoints"] == {"medgemma-tiny": of}


@pytest.mark.parametrize("key", [17, "17"])
def test_only_the_selected_backbones_and_seeds_need_checkpoints(key):
    own = {"checkpoints": {"medgemma-tiny": {key: {"folder": "."}}}, "training": None, "reward": None}
    changes = {"actors": {"rlvr": {**own, "settings": None}}, "figures": None}
    with pytest.raises(ConfigError, match=r"checkpoints\.qwen3-vl-tiny: none for seed 17, 29, 43\."):
        selected({}, changes)
    with pytest.raises(ConfigError, match=r"checkpoints\.medgemma-tiny: none for seed 29, 43\.") as refused:
        selected({"backbones": ["medgemma-tiny"]}, changes)
    assert "qwen3-vl-tiny" not in str(refused.value)
    study = selected({"backbones": ["medgemma-tiny"], "seeds": [17]}, changes)
    assert study["actors"]["rlvr"]["checkpoints"] == {"medgemma-tiny": {17: {"folder": "."}}}
    assert "rlvr" not in selected({"actors": ["base"]}, changes)["actors"]


def test_the_checkpoint_of_a_seed_that_is_not_selected_may_be_missing():
    of = {17: {"folder": "."}, 29: {"folder": "nowhere"}}
    own = {"checkpoints": {"medgemma-tiny": of}, "training": None, "reward": None, "settings": None}
    changes = {"actors": {"rlvr": own}, "figures": None}
    only = {"only": {"backbones": ["medgemma-tiny"], "seeds": [17]}}
    study = resolve(merged(merged(EMBEDDED, changes), only), root=ROOT)
    assert list(study.actors["rlvr"].checkpoints["medgemma-tiny"]) == [17]


def test_the_folder_of_a_data_set_that_is_not_selected_may_be_missing():
    missing = {"datasets": {"elsewhere": {**ELSEWHERE, "source": {"folder": "nowhere"}}}}
    only = {"only": {"datasets": ["slake"]}}
    resolve(merged(EMBEDDED, {**missing, **only}), root=ROOT)


def test_a_contrast_stays_if_both_of_its_methods_do_and_a_comparison_if_its_method_does():
    assert list(selected({"methods": ["dualread", "rlcr"]})["contrasts"]) == ["visual", "rlcr"]
    study = selected({"actors": ["rlvr"]})
    assert list(study["contrasts"]) == ["visual", "token"]
    assert study["tables"]["significance"] == {"method": "dualread"}
    study = selected({"methods": ["per"]})
    assert list(study["contrasts"]) == ["visual"]
    assert "significance" not in study["tables"]  # the method that it compares is gone
    assert "paired" in study["tables"]


def test_answers_are_compared_with_those_of_an_actor_that_is_left():
    compared = {"metrics": {"changed_from": "rlcr"}}
    assert selected({"actors": ["rlvr", "rlcr"]}, compared)["metrics"]["changed_from"] == "rlcr"
    assert "changed_from" not in selected({"actors": ["rlvr"]}, compared)["metrics"]


def test_a_contrast_keeps_its_selected_data_sets_and_the_means():
    contrast = selected({"datasets": ["slake"]})["contrasts"]["rlcr"]
    assert contrast["datasets"] == ["slake", "ood6", "ood_ccg"]
