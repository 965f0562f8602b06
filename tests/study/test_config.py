"""What a study may say: the studies of this repository are valid; an unknown key and a wrong type are named."""

from copy import deepcopy
from typing import get_args

import pytest
import yaml

from dualread.errors import ConfigError
from dualread.evaluation.answer_metrics import STORED
from dualread.evaluation.pair_metrics import COMPARABLE
from dualread.schema.columns import MANIFEST, Column
from dualread.schema.metrics import Metric
from dualread.study.config import resolve
from tests.study.embedded import EMBEDDED, ROOT, merged, problems


@pytest.mark.parametrize("study", ["smoke", "slake_tiny", "paper", "one_gpu", "one_gpu_lora"])
def test_the_studies_of_this_repository_are_valid(study):
    assert laid(study).study == study


def laid(*studies):
    config = EMBEDDED
    for study in studies:
        config = merged(config, yaml.safe_load((ROOT / f"workflow/studies/{study}.yaml").read_text()))
    return resolve(config)


@pytest.mark.parametrize(("study", "overlay"), [("smoke", "vllm_cpu"), ("paper", "vllm")])
def test_vllm_and_estimators_can_be_laid_over_any_study(study, overlay):
    resolved = laid(study, overlay, "estimators")
    assert resolved.generation.engine == "vllm_engine"
    assert "batch_size" not in resolved.generation.settings
    own = [name for name, method in resolved.methods.items() if method.group == "LM-Polygraph"]
    assert set(own) < set(resolved.tables["estimators"].methods or ())


def test_the_given_mapping_is_left_alone():
    before = deepcopy(EMBEDDED)
    resolve(EMBEDDED)
    assert before == EMBEDDED


@pytest.mark.parametrize("study", ["a/b", "../a", "A b", "micro\n", ""])
def test_the_name_of_a_study_has_to_be_a_valid_folder_name(study):
    assert f"study: {study!r} is not of the form" in problems({"study": study})


def test_an_entry_that_contains_itself_is_refused():
    itself = {}
    itself["seeds"] = itself
    with pytest.raises(ConfigError, match="an entry holds itself"):
        resolve({**EMBEDDED, "only": itself})


@pytest.mark.parametrize("cost", ["t", "$8t+K$", "$t+\\rho+t$", "$\\tau$"])
def test_a_cost_is_written_in_the_symbols_of_the_paper(cost):
    assert f"methods.psr.cost: {cost!r} is not of the form" in problems({"methods": {"psr": {"cost": cost}}})
    resolve(merged(EMBEDDED, {"methods": {"psr": {"cost": "$8t+2\\rho+\\tau$"}}}))


def test_a_study_may_have_no_figures_or_no_contrasts():
    for section in ("figures", "contrasts"):
        study = resolve(merged(EMBEDDED, {section: None}))
        assert getattr(study, section) == {}
        assert section not in study.as_mapping()


def test_a_contrast_may_name_every_metric_that_can_be_compared():
    assert set(get_args(Metric)) == {*STORED, *COMPARABLE}
    message = problems({"contrasts": {"rlcr": {"metrics": ["ece15"]}}})
    assert "contrasts.rlcr.metrics.0: 'ece15' is not allowed. Known: auroc, brier, " in message
    message = problems({"contrasts": {"rlcr": {"metrics": ["auroc", "log_loss"]}}})
    assert "contrasts.rlcr.metrics: 'log_loss' is not computed." in message
    resolve(merged(EMBEDDED, {"contrasts": {"rlcr": {"metrics": ["e_aurc"]}}, "metrics": {"further": ["e_aurc"]}}))


def test_at_most_ten_problems_are_listed():
    empty = dict.fromkeys(("label", "group", "actor", "reader"))  # 3 methods x 4 missing keys = 12 problems
    lines = problems({"methods": dict.fromkeys(("psr", "per", "p_state"), empty)}).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "config.yaml: ... and 2 more"


@pytest.mark.parametrize(
    "rule",
    [
        {"answer_types": ["closed"]},
        {"questions": {"open": 500, "closed": 500}, "max_per_image": 2},
        {"questions": 1000, "max_per_image": 1},
    ],
)
def test_a_rule_for_selecting_questions_is_accepted(rule):
    study = resolve(merged(EMBEDDED, {"datasets": {"slake": {"select": rule}}}))
    assert study.as_mapping()["datasets"]["slake"]["select"] == rule


def test_every_column_that_donors_may_have_to_agree_in_is_in_the_manifest():
    assert set(get_args(Column)) <= set(MANIFEST.columns)


def test_problems_of_entries_that_follow_config_on_the_command_line_name_it():
    """Snakemake reads values inside of others as text."""
    given = {"seeds": ["17"], "actors": {"rlvr": {"settings": {"steps": "6"}}}}
    with pytest.raises(ConfigError) as caught:
        resolve(merged(EMBEDDED, given), source="config.yaml", given=given)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("--config: seeds.0: '17' ")
    assert lines[-1].startswith("--config turns values inside of others into text. Write them into a file")
    with pytest.raises(ConfigError) as caught:
        resolve({**EMBEDDED, "nonsense": 1, "seeds": 17}, source="config.yaml", given={"seeds": 17})
    assert {line.partition(":")[0] for line in str(caught.value).splitlines()[:-1]} == {"--config", "config.yaml"}
