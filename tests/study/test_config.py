from copy import deepcopy
from pathlib import Path
from typing import get_args

import pytest
import yaml

from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.errors import ConfigError
from dualread.evaluation.replicates import KEPT
from dualread.grading.parse import parse
from dualread.study import config as config_module
from dualread.study.config import resolve, without_nulls
from dualread.study.sections.answers import Contract
from dualread.study.sections.data import Column
from dualread.study.sections.results import Metric
from dualread.study.training import training_settings

ROOT = Path(__file__).resolve().parents[2]
EMBEDDED = yaml.safe_load((ROOT / "config.yaml").read_text())


# A checkpoint for one backbone and seed only.
OWN = {"medgemma-tiny": {17: {"hub": "someone/actor", "revision": "0" * 40}}}
COMES_AS_CHECKPOINTS = {
    "actors": {"rlvr": {"checkpoints": OWN, "training": None, "reward": None, "settings": None}},
    "figures": None,
}


def merged(base, changes):
    """What Snakemake does with --configfile: mappings key by key, everything else replaced."""
    result = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def problems(changes):
    with pytest.raises(ConfigError) as error:
        resolve(merged(EMBEDDED, changes), source="config.yaml")
    return str(error.value)


@pytest.mark.parametrize("study", [None, "smoke", "slake_tiny", "paper", "one_gpu"])
def test_the_studies_of_this_repository_are_valid(study):
    changes = yaml.safe_load((ROOT / f"workflow/studies/{study}.yaml").read_text()) if study else {}
    assert resolve(merged(EMBEDDED, changes)).study == (study or "embedded")


@pytest.mark.parametrize("study", ["smoke", "slake_tiny", "paper"])
@pytest.mark.parametrize("overlay", ["vllm", "vllm_cpu"])
def test_vllm_can_be_laid_over_any_study(study, overlay):
    changes = [yaml.safe_load((ROOT / f"workflow/studies/{name}.yaml").read_text()) for name in (study, overlay)]
    resolved = resolve(merged(merged(EMBEDDED, changes[0]), changes[1]))
    assert resolved.generation.engine == "vllm_engine"
    assert "batch_size" not in resolved.generation.settings


def test_the_settings_of_an_engine_are_checked():
    engine = {"engine": "vllm_engine", "settings": {"max_num_seqs": 0}}
    message = problems({"generation": engine})
    assert "generation.settings.batch_size: unknown key. Known: gpu_memory_utilization, max_num_seqs." in message
    assert "generation.settings.max_num_seqs: 0 is less than the minimum of 1" in message
    message = problems({"machine": {"vllm": "rocm"}})
    assert "config.yaml: machine.vllm: 'rocm' is not allowed. Known: cuda, cpu." in message


def test_the_given_mapping_is_left_alone():
    before = deepcopy(EMBEDDED)
    resolve(EMBEDDED)
    assert before == EMBEDDED


def test_a_null_removes_an_entry_at_any_depth():
    assert without_nulls({"a": None, "b": {"c": None, "d": [1, {"e": None}]}}) == {"b": {"d": [1, {}]}}


def test_an_unknown_key_is_named_with_the_known_ones():
    message = problems({"datasets": {"slake": {"lable": "SLAKE"}}})
    assert message.startswith("config.yaml: datasets.slake.lable: unknown key. Known: expect_sha256, id, label, ")


def test_an_unknown_section_is_named():
    assert "config.yaml: reader: unknown key. Known: actors, " in problems({"reader": {}})


def test_a_missing_key_is_named():
    assert "config.yaml: methods.psr.label: missing." in problems({"methods": {"psr": {"label": None}}})


def test_a_wrong_type_is_named_with_its_value():
    assert "config.yaml: seeds.0: '17' is not of type integer." in problems({"seeds": ["17"]})


def test_a_branch_is_no_revision():
    source = {"phantom": None, "hub": "owner/name", "revision": "main"}
    assert "datasets.slake.source.revision: 'main' is not of the form" in problems(
        {"datasets": {"slake": {"source": source}}}
    )


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


def test_a_hub_needs_a_revision():
    assert "Give both or neither" in problems(
        {"datasets": {"slake": {"source": {"phantom": None, "hub": "owner/name"}}}}
    )


@pytest.mark.parametrize(
    ("changes", "where", "family"),
    [
        ({"phantoms": {"slake": {"format": "x"}}}, "phantoms.slake.format", "writers"),
        ({"datasets": {"slake": {"loader": "x"}}}, "datasets.slake.loader", "datasets"),
        ({"backbones": {"qwen3-vl-tiny": {"family": "x"}}}, "backbones.qwen3-vl-tiny.family", "backbones"),
        ({"actors": {"rlvr": {"training": "x"}}}, "actors.rlvr.training", "training"),
        ({"actors": {"rlvr": {"reward": "x"}}}, "actors.rlvr.reward", "rewards"),
        ({"generation": {"engine": "x"}}, "generation.engine", "generation"),
        ({"methods": {"psr": {"reader": "x"}}}, "methods.psr.reader", "readers"),
        ({"tables": {"x": {"methods": ["psr"]}}}, "tables.x", "tables"),
        ({"figures": {"x": {"actors": ["rlvr"]}}}, "figures.x", "figures"),
    ],
)
def test_an_unknown_plugin_is_named_with_the_known_ones(changes, where, family):
    known = ", ".join(config_module.plugins.known(family))
    folder = config_module.plugins.package_of(family).replace(".", "/")
    assert f"config.yaml: {where}: 'x': no such plugin in lib/dualread/{folder}. Known: {known}." in problems(changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"datasets": {"slake": {"source": {"phantom": "x"}}}},
            "source.phantom: 'x' is not in phantoms. Known: slake, vqa_rad, ",
        ),
        (
            {"methods": {"psr": {"actor": "x"}}},
            "methods.psr.actor: 'x' is not in actors. Known: base, rlvr, rlcr, dcpo, ",
        ),
        ({"methods": {"per": {"parents": {"state": "x"}}}}, "methods.per.parents.state: 'x' is not in methods."),
        ({"tables": {"costs": {"methods": ["x"]}}}, "tables.costs.methods: 'x' is not in methods."),
        ({"tables": {"main": {"without": ["x"]}}}, "tables.main.without: 'x' is not in methods."),
        ({"methods": {"sc2": {"views": ["x"]}}}, "methods.sc2.views: 'x' is not in views. Known: samples, "),
        ({"conditions": {"donor_fixed_prefix": {"completions": "x"}}}, "completions: 'x' is not in conditions."),
        ({"conditions": {"shuffled_image": {"actors": ["x"]}}}, "conditions.shuffled_image.actors: 'x' is not in"),
        ({"tuning": {"x": {"backbone": "medgemma-tiny", "seed": 43, "trials": 1}}}, "tuning.x: 'x' is not in methods."),
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
        ({"tables": {"significance": {"method": "x"}}}, "tables.significance.method: 'x' is not in methods."),
        ({"methods": {"psr": None}}, "methods.dualread.parents.pre: 'psr' is not in methods."),
    ],
)
def test_an_unknown_name_is_listed_with_the_known_ones(changes, expected):
    assert expected in problems(changes)


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
            {"actors": {"base": None}, "methods": {"base": None}, "tables": {"controls": None}, "figures": None},
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
            {"tuning": {"psr": {"backbone": "medgemma-tiny", "seed": 43, "trials": 1}}},
            "tuning.psr: the reader 'psr' has",
        ),
        (
            {"methods": {"dualread": {"actor": "base"}}},
            "methods.dualread.parents.pre: 'psr' reads 'rlvr', 'dualread' reads 'base'",
        ),
    ],
)
def test_contradictions_are_explained(changes, expected):
    assert expected in problems(changes)


def test_a_study_may_have_no_figures_or_no_contrasts():
    for section in ("figures", "contrasts"):
        study = resolve(merged(EMBEDDED, {section: None}))
        assert getattr(study, section) == {}
        assert section not in study.as_mapping()


def test_a_contrast_may_name_every_metric_that_has_replicates():
    assert get_args(Metric) == KEPT
    message = problems({"contrasts": {"rlcr": {"metrics": ["ece15"]}}})
    assert "contrasts.rlcr.metrics.0: 'ece15' is not allowed. Known: auroc, brier, " in message


def test_at_most_ten_problems_are_listed():
    empty = dict.fromkeys(("label", "group", "actor", "reader"))  # 3 methods x 4 missing keys = 12 problems
    lines = problems({"methods": dict.fromkeys(("psr", "per", "p_state"), empty)}).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "config.yaml: ... and 2 more"


@pytest.mark.parametrize(
    ("role", "message"),
    [
        ({"calib": 0.3}, "datasets.slake.roles.train: 'calib' is not allowed. Known: fit, stop, calibration, "),
        ({"fit": "x"}, "datasets.slake.roles.train.fit: 'x' is not of type number."),
        ("fitt", "datasets.slake.roles.train: 'fitt' is not allowed. Known: fit, stop, calibration, "),
    ],
)
def test_only_the_alternative_that_was_meant_is_explained(role, message):
    assert message in problems({"datasets": {"slake": {"roles": {"train": role}}}})


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


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"questions": {"yes": 3}}, "datasets.slake.select.questions: 'yes' is not allowed. Known: open, closed."),
        ({"questions": 0}, "datasets.slake.select.questions: 0 is less than the minimum of 1"),
        ({"question": 5}, "datasets.slake.select.question: unknown key. Known: answer_types, max_per_image, questions"),
    ],
)
def test_an_unknown_rule_for_selecting_questions_is_named(rule, message):
    assert message in problems({"datasets": {"slake": {"select": rule}}})


def test_a_prompt_that_is_not_there_is_named_before_anything_runs():
    with pytest.raises(ConfigError, match=r"actors\.rlvr\.prompt: 'sharde': no such file in "):
        resolve(merged(EMBEDDED, {"actors": {"rlvr": {"prompt": "sharde"}}}), root=ROOT)
    resolve(EMBEDDED, root=ROOT)


def test_a_study_can_be_planned_before_its_official_files_are_there():
    source = {"phantom": None, "folder": "nowhere"}
    resolve(merged(EMBEDDED, {"datasets": {"slake": {"source": source}}}), root=ROOT)


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actors": {"rlvr": {"settings": {"step": 3}}}}, "actors.rlvr.settings.step: unknown key. Known: betas, "),
        ({"actors": {"rlvr": {"settings": {"steps": -2}}}}, "actors.rlvr.settings.steps: -2 is less than the minimum"),
        ({"actors": {"rlvr": {"settings": {"kl_coefficient": None}}}}, "actors.rlvr.settings.kl_coefficient: missing."),
        ({"generation": {"settings": {"batch_size": "big"}}}, "generation.settings.batch_size: 'big' is not of type"),
        ({"methods": {"psr": {"settings": {"pateince": 3}}}}, "methods.psr.settings.pateince: unknown key."),
        ({"methods": {"base": {"settings": {"x": 1}}}}, "methods.base.settings.x: unknown key. Known: none."),
        ({"replay": {"settings": {"batchsize": 3}}}, "replay.settings.batchsize: unknown key. Known: batch_size."),
    ],
)
def test_settings_of_plugins_are_checked_before_anything_runs(changes, message):
    assert message in problems(changes)


def test_a_plugin_may_declare_several_types_of_a_setting(monkeypatch):
    settings = config_module.plugins.settings
    k = {"k": {"type": ["integer", "array"]}}
    monkeypatch.setattr(
        config_module.plugins,
        "settings",
        lambda family, name: k if name == "self_consistency" else settings(family, name),
    )
    message = problems({"methods": {"sc2": {"settings": {"k": "two"}}}})
    assert (
        message == "config.yaml: methods.sc2.settings.k: 'two' is not of type ['integer', 'array']. Correct the value."
    )


def test_settings_of_a_backbone_and_its_recipe_are_checked():
    settings = {"dtype": "float16"}
    assert "settings.dtype: 'float16' is not allowed. Known: float32, bfloat16." in problems(
        {"backbones": {"medgemma-tiny": {"settings": settings}}}
    )
    recipe = {"pretrain": {"architecture": {"layer": 4}, "pool": {"settings": {"image": 3}}}}
    assert "architecture.layer: unknown key." in problems({"backbones": {"medgemma-tiny": {"source": recipe}}})
    recipe = {"pretrain": {"pool": {"settings": {"image": 3}}}}
    assert "pool.settings.image: unknown key." in problems({"backbones": {"medgemma-tiny": {"source": recipe}}})


def test_the_larger_prompt_limit_counts_and_otherwise_the_setting_of_the_backbone():
    def settings(actor, backbone):
        return training_settings(actor, backbone)

    both = settings({"steps": 8, "clip_low": 0.2, "max_prompt_tokens": 1024}, {"steps": 9, "max_prompt_tokens": 512})
    assert both == {"steps": 9, "clip_low": 0.2, "max_prompt_tokens": 1024}
    assert settings({"steps": 8}, {"max_prompt_tokens": 512}) == {"steps": 8, "max_prompt_tokens": 512}
    assert training_settings({"steps": 8}, {}) == {"steps": 8}


@pytest.mark.parametrize(
    ("changes", "where", "meant"),
    [
        ({"sedes": [17]}, "sedes", "'seeds'"),
        ({"datasets": {"slake": {"lable": "x"}}}, "datasets.slake.lable", "'label'"),
        ({"datasets": {"slake": {"loader": "slak"}}}, "datasets.slake.loader", "'slake'"),
        ({"datasets": {"slake": {"prompt": "sharde"}}}, "datasets.slake.prompt", "'shared'"),
        ({"datasets": {"slake": {"source": {"phantom": "slacke"}}}}, "source.phantom", "'slake'"),
        ({"datasets": {"slake": {"pairing": {"match_on": ["modalty"]}}}}, "pairing.match_on.0", "'modality'"),
        ({"datasets": {"slake": {"roles": {"train": "fitt"}}}}, "roles.train", "'fit'"),
        ({"phantoms": {"slake": {"format": "slakee"}}}, "phantoms.slake.format", "'slake'"),
        ({"backbones": {"qwen3-vl-tiny": {"family": "qwen3"}}}, "backbones.qwen3-vl-tiny.family", "'qwen3_vl'"),
        ({"actors": {"rlvr": {"training": "grop"}}}, "actors.rlvr.training", "'grpo'"),
        ({"actors": {"rlvr": {"reward": "rlv"}}}, "actors.rlvr.reward", "'rlvr'"),
        ({"actors": {"rlvr": {"contract": "singel"}}}, "actors.rlvr.contract", "'single'"),
        ({"generation": {"engine": "vllm"}}, "generation.engine", "'vllm_engine'"),
        ({"methods": {"psr": {"reader": "prs"}}}, "methods.psr.reader", "'psr'"),
        ({"methods": {"psr": {"actor": "rlv"}}}, "methods.psr.actor", "'rlvr'"),
        ({"methods": {"psr": {"actor": "RLVR"}}}, "methods.psr.actor", "'rlvr'"),
        ({"methods": {"psr": {"settings": {"pateince": 3}}}}, "methods.psr.settings.pateince", "'patience'"),
        ({"methods": {"sc2": {"views": ["sample"]}}}, "methods.sc2.views", "'samples'"),
        ({"tables": {"mian": {}}}, "tables.mian", "'main'"),
        ({"tables": {"main": {"without": ["sapmla"]}}}, "tables.main.without", "'saplma'"),
        ({"figures": {"relibility": {}}}, "figures.relibility", "'reliability'"),
        ({"conditions": {"donor": {"image": "doner"}}}, "conditions.donor.image", "'donor'"),
        ({"only": {"actor": ["rlvr"]}}, "only.actor", "'actors'"),
        ({"only": {"backbones": ["qwen3-vl"]}}, "only.backbones", "'qwen3-vl-tiny'"),
        ({"only": {"datasets": ["vqarad"]}}, "only.datasets", "'vqa_rad'"),
        ({"only": {"seeds": [16]}}, "only.seeds", "17"),
    ],
)
def test_the_nearest_name_is_offered_wherever_a_name_is_unknown(changes, where, meant):
    (line,) = (line for line in problems(changes).splitlines() if where in line)
    assert line.endswith(f"Did you mean {meant}?")


def test_nothing_is_offered_where_nothing_is_near():
    assert "Did you mean" not in problems({"methods": {"psr": {"actor": "xyz"}}})


@pytest.mark.parametrize("spelled", ["null", "Null", "NULL", "~", ""])
def test_a_null_that_was_meant_as_text_is_explained(spelled):
    changes = yaml.safe_load(f"methods: {{question_prior: {{group: {spelled}}}}}")
    message = problems(changes)
    assert "methods.question_prior.group: missing. Its value is null" in message
    assert 'in quotes, as in "Null"' in message
    quoted = yaml.safe_load('methods: {question_prior: {group: "Null"}}')
    assert resolve(merged(EMBEDDED, quoted)).methods["question_prior"].group == "Null"


def test_a_null_setting_is_explained_and_a_missing_one_is_not():
    message = problems({"methods": {"psr": {"settings": {"hidden": None}}}})
    assert "methods.psr.settings.hidden: missing. Its value is null" in message
    assert "is null" not in problems({"methods": {"new": {"label": "New", "actor": "rlvr", "reader": "psr"}}})


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("methods: {psr: {group: Yes}}", "methods.psr.group: True"),
        ("methods: {psr: {label: 2024}}", "methods.psr.label: 2024"),
        ("views: {p_true: {choices: {words: [Yes, No]}}}", "views.p_true.choices.words.1: False"),
        ("tables: {main: {without: [Null]}}", "tables.main.without.0: None"),
        ("datasets: {Null: {}}", "datasets: None"),
        ("study: no", "study: False"),
    ],
)
def test_text_that_yaml_reads_as_something_else_has_to_be_quoted(text, where):
    message = problems(yaml.safe_load(text))
    assert f"{where} is not of type text." in message
    assert "has to be in quotes" in message


def test_the_prompts_that_a_base_is_pretrained_on_are_checked_too():
    training = {"mixture": {"sharde": 0.1}}
    changes = {"backbones": {"medgemma-tiny": {"source": {"pretrain": {"training": training}}}}}
    assert "medgemma-tiny.source.pretrain.training.mixture: 'sharde': no such file" in problems(changes)


def test_the_contracts_of_actors_are_those_of_the_parser():
    contracts = get_args(Contract)
    assert all(parse("", contract=name).status == "invalid_both" for name in contracts)
    with pytest.raises(ValueError, match=f"Known: {', '.join(sorted(contracts))}"):
        parse("", contract="none")


def test_every_column_that_donors_may_have_to_agree_in_is_in_the_manifest():
    assert set(get_args(Column)) <= set(MANIFEST.columns)
