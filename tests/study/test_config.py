"""What a study may say: nothing is converted or lost, every key is explained, and any value is accepted or refused.

What it may not say is in refused.txt (test_messages.py).
"""

import json
import math
import subprocess
import sys
from copy import deepcopy
from typing import get_args

import hypothesis
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from dualread.apps.main import main
from dualread.errors import ConfigError
from dualread.evaluation.answer_metrics import STORED
from dualread.evaluation.pair_metrics import COMPARABLE
from dualread.schema.columns import MANIFEST, Column
from dualread.schema.explained import json_schema, settings
from dualread.schema.metrics import Metric
from dualread.schema.study import Config
from dualread.study import config as config_module
from dualread.study.config import resolve, without_nulls
from dualread.study.files import laid_over
from dualread.training.settings import training_settings
from tests.drawn import anything, attempt, examples, few
from tests.study.embedded import EMBEDDED, ROOT, merged, problems


@pytest.mark.parametrize("study", ["smoke", "slake_tiny", "paper", "one_gpu", "one_gpu_lora"])
def test_the_studies_of_this_repository_are_valid(study):
    assert (
        resolve(merged(EMBEDDED, yaml.safe_load((ROOT / f"workflow/studies/{study}.yaml").read_text()))).study == study
    )


@pytest.mark.parametrize(("study", "overlay"), [("smoke", "vllm_cpu"), ("paper", "vllm")])
def test_vllm_and_estimators_can_be_laid_over_any_study(study, overlay):
    config = EMBEDDED
    for name in (study, overlay, "estimators"):
        config = merged(config, yaml.safe_load((ROOT / f"workflow/studies/{name}.yaml").read_text()))
    resolved = resolve(config)
    assert resolved.generation.engine == "vllm_engine"
    assert "batch_size" not in resolved.generation.settings
    own = [name for name, method in resolved.methods.items() if method.group == "LM-Polygraph"]
    assert set(own) < set(resolved.tables["estimators"].methods or ())


def test_the_given_mapping_is_left_alone():
    before = deepcopy(EMBEDDED)
    resolve(EMBEDDED)
    assert before == EMBEDDED


def test_an_entry_that_contains_itself_is_refused():
    itself = {}
    itself["seeds"] = itself
    with pytest.raises(ConfigError, match="an entry holds itself"):
        resolve({**EMBEDDED, "only": itself})


@pytest.mark.parametrize(
    "text",
    [
        "methods: {psr: {cost: $8t+2\\rho+\\tau$}}",
        "contrasts: {rlcr: {metrics: [e_aurc]}}\nmetrics: {further: [e_aurc]}",
        "datasets: {slake: {select: {answer_types: [closed]}}}",
        "datasets: {slake: {select: {questions: {open: 500, closed: 500}, max_per_image: 2}}}",
        "datasets: {slake: {select: {questions: 1000, max_per_image: 1}}}",
        "backbones: {qwen3-vl-tiny: {training: {shard: optimizer, processes: 4, nodes: 2}}}",
        'methods: {question_prior: {group: "Null"}}',
        "replay: {from: generation}",
        "figures: null",
        "contrasts: null",
    ],
)
def test_what_a_study_may_say_is_kept_as_it_was_said(text):
    changes = yaml.safe_load(text)
    written = resolve(merged(EMBEDDED, changes)).as_mapping()
    assert written == without_nulls(merged(EMBEDDED, changes))


def test_a_null_removes_an_entry_at_any_depth():
    assert without_nulls({"a": None, "b": {"c": None, "d": [1, {"e": None}]}}) == {"b": {"d": [1, {}]}}


def test_a_contrast_may_name_every_metric_that_can_be_compared_and_a_pairing_every_column():
    assert set(get_args(Metric)) == {*STORED, *COMPARABLE}
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


def test_a_name_that_is_no_text_is_refused_where_plugins_check_no_settings():
    with pytest.raises(ConfigError, match=r"actors\.rlvr\.settings\.draws_as: 3 is not in actors\."):
        resolve(merged(EMBEDDED, {"actors": {"rlvr": {"settings": {"draws_as": 3}}}}), with_plugins=False)


@pytest.mark.parametrize(
    ("constant", "value", "changes", "said"),
    [
        (
            "HUB_FILES",
            {"test": ("test.csv",)},
            {"datasets": {"slake": {"source": {"phantom": None, "hub": "owner/name", "revision": "0" * 40}}}},
            "datasets.slake.splits: ['train', 'validation']; the loader 'slake' has test on the hub.",
        ),
        (
            "COLLECTS",
            None,
            {"replay": {"from": "generation"}},
            "replay.from: 'generation': transformers_engine does not keep states while it answers.",
        ),
    ],
)
def test_what_a_plugin_declares_limits_what_a_study_may_say(monkeypatch, constant, value, changes, said):
    known = config_module.plugins.declared

    def declared(family, name, what):
        return value if what == constant else known(family, name, what)

    monkeypatch.setattr(config_module.plugins, "declared", declared)
    resolve(EMBEDDED)
    assert said in problems(changes)


@pytest.mark.parametrize(
    ("actor", "backbone", "expected"),
    [
        (
            {"steps": 8, "clip_low": 0.2, "max_prompt_tokens": 1024},
            {"steps": 9, "max_prompt_tokens": 512},
            {"steps": 9, "clip_low": 0.2, "max_prompt_tokens": 1024},  # the larger limit
        ),
        ({"steps": 8}, {"max_prompt_tokens": 512}, {"steps": 8, "max_prompt_tokens": 512}),
        ({"steps": 8}, {}, {"steps": 8}),
    ],
)
def test_settings_of_a_backbone_come_before_those_of_an_actor(actor, backbone, expected):
    assert training_settings(actor, backbone) == expected


STUDIES = [EMBEDDED, *(yaml.safe_load(path.read_text()) for path in sorted(ROOT.glob("workflow/studies/*.yaml")))]
STATED = [without_nulls(laid_over(EMBEDDED, study)) for study in STUDIES]


@pytest.mark.parametrize("stated", STATED, ids=lambda stated: stated["study"])
def test_a_typed_config_is_written_as_it_was_read(stated):
    written = Config.model_validate(stated).as_mapping()
    assert json.dumps(written, sort_keys=True) == json.dumps(
        stated, sort_keys=True
    )  # 1 is not 1.0 in a key of the store


def test_every_key_is_explained():
    found = {place: (words, meaning) for place, words, meaning in settings()}
    assert [place for place, (_, meaning) in found.items() if not meaning] == []
    assert found["replay.kappa"] == ("number, above 0, at most 100, required", "Temperature of the visual pooling.")
    assert found["metrics.bootstrap.replicates"][0] == "integer, at least 0, required"
    assert found["datasets.<name>.pairing.splits"][0] == "list of `train` or `validation` or `test`, required"


def test_the_json_schema_of_a_config_accepts_every_study():
    validator = Draft202012Validator(json_schema())
    for stated in STATED:
        validator.validate(stated)


def test_the_page_of_all_settings_is_that_of_the_declarations(capsys):
    assert main(["schema", "--markdown"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs/settings.md").read_text()


def test_the_program_prints_a_section_a_table_or_both(capsys):
    assert main(["schema", "contrasts"]) == 0
    said = capsys.readouterr().out
    assert "contrasts.parquet" in said
    assert "contrasts.<name>.baseline" in said
    assert main(["schema", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()
    assert main(["schema", "grpo"]) == 0
    said = capsys.readouterr().out
    assert "plugins.training.{dcpo,grpo,state_signal,vl_calibration}.group_size" in said
    assert "plugins.rollouts" not in said
    assert main(["schema", "replays"]) == 1
    assert "Did you mean 'replay'?" in capsys.readouterr().err


def test_a_config_is_not_changed_after_it_was_checked():
    with pytest.raises(ValidationError, match="frozen"):
        resolve(EMBEDDED).study = "another"


@pytest.mark.parametrize("seed", [17, "17"])
def test_the_seed_of_a_checkpoint_is_a_number_however_yaml_reads_its_key(seed):
    own = {
        "checkpoints": {"medgemma-tiny": {seed: {"folder": "."}}},
        "training": None,
        "reward": None,
        "settings": None,
    }
    given = without_nulls(merged(EMBEDDED, {"actors": {"rlvr": own}}))
    assert list(Config.model_validate(given).actors["rlvr"].checkpoints["medgemma-tiny"]) == [17]


def test_a_job_starts_without_the_models():
    program = "import sys, dualread.store.run; print(*sorted({'jsonschema', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


def test_a_table_of_settings_does_not_depend_on_the_models():
    program = "import sys, dualread.training.settings; print(*sorted({'numpy', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


wrong = st.one_of(
    anything, st.sampled_from([[], {}, {1: 2}, [[1]], "nan", math.nan, -1, 10**400, "../x", {"null": None}, b"x", True])
)


def places(value, at=()):
    yield at
    if isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(member, (*at, key))


PLACES = [at for at in places(EMBEDDED) if at]


@pytest.mark.parametrize("section", sorted(EMBEDDED))
def test_a_section_of_another_type_is_refused(section):
    for value in (3, [], [[1]], True, math.nan):
        with pytest.raises(ConfigError, match=rf"^study\.yaml: {section}"):
            resolve({**EMBEDDED, section: value}, source="study.yaml")


@hypothesis.settings(few, max_examples=examples(150))
@given(st.sampled_from(PLACES), wrong)
def test_any_value_anywhere_in_a_config_is_accepted_or_refused(at, value):
    config = deepcopy(EMBEDDED)
    inner = config
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    _, error = attempt(lambda: resolve(config, source="study.yaml"), ConfigError)
    assert error is None or str(error).startswith("study.yaml: ")


@few
@given(anything)
def test_a_value_that_is_no_config_is_refused(value):
    with pytest.raises(ConfigError, match=r"^study\.yaml: "):
        resolve(value, source="study.yaml")
