"""What a study cannot say: each refusal says where and what; `test_messages.py` has whole sentences."""

import pytest
import yaml

from dualread.errors import ConfigError
from dualread.study import config as config_module
from dualread.study.config import resolve, without_nulls
from dualread.training.settings import training_settings
from tests.study.embedded import EMBEDDED, merged, problems


def of_training(**settings):
    return {"backbones": {"qwen3-vl-tiny": {"training": settings}}}


REFUSED = [
    # settings of plugins
    ({"actors": {"rlvr": {"settings": {"step": 3}}}}, "actors.rlvr.settings.step: unknown key. Known: betas, "),
    ({"actors": {"rlvr": {"settings": {"kl_coefficient": None}}}}, "actors.rlvr.settings.kl_coefficient: missing."),
    ({"generation": {"settings": {"batch_size": "big"}}}, "generation.settings.batch_size: 'big' is not of type"),
    ({"replay": {"settings": {"batchsize": 3}}}, "replay.settings.batchsize: unknown key. Known: batch_size."),
    (of_training(rollouts="vlm"), "Known: vllm. Did you mean 'vllm'?"),
    (
        of_training(rollouts="vllm", rollout_settings={"max_seqs": 3}),
        "backbones.qwen3-vl-tiny.training.rollout_settings.max_seqs: unknown key. Known: gpu_memory_utilization, ",
    ),
    (
        of_training(rollouts="vllm", importance_sampling={"mode": "tokens", "clip_max": 2.0}),
        "importance_sampling.mode: 'tokens' is not",
    ),
    (
        of_training(shard="full"),
        "backbones.qwen3-vl-tiny.training over actors.rlvr.settings.shard: there is one process. Expected several",
    ),
    (of_training(shard="all", processes=2), "shard: 'all' is not allowed. Known: optimizer, full."),
    (
        of_training(shard="full", processes=2, lora={"rank": 2, "alpha": 4, "dropout": 0.1}),
        "over actors.rlvr.settings.lora.dropout: 0.1. Expected none with `shard`, because layers",
    ),
    (of_training(processes=3, nodes=2), "nodes: 2 cannot share 3 `processes` equally. Change either."),
    (of_training(num_iterations=3), "steps: 8. Expected a multiple of num_iterations, 3."),
    (of_training(num_iterations=2, save_every=3), "save_every: 3. Expected a multiple of num_iterations, 2."),
    (
        {"actors": {"rlvr": {"settings": {"nodes": 2}}}},
        "actors.rlvr.settings.nodes: only a backbone's `training` may set it. Move it there.",
    ),
    # names that nothing has
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
    ({"contrasts": {"rlcr": {"baseline": "ood6"}}}, "contrasts.rlcr.baseline: 'ood6' is not in methods."),
    (
        {"contrasts": {"rlcr": {"datasets": ["slake", "ood6", "ood_ccg", "x"]}}},
        "contrasts.rlcr.datasets: 'x' is not in datasets. Known: slake, vqa_rad, ",
    ),
    ({"actors": {"rlcr": {"settings": {"draws_as": "x"}}}}, "actors.rlcr.settings.draws_as: 'x' is not in actors."),
    ({"metrics": {"changed_from": "x"}}, "metrics.changed_from: 'x' is not in actors. Known: base, rlvr, "),
    ({"tables": {"significance": {"method": "x"}}}, "tables.significance.method: 'x' is not in methods."),
    ({"methods": {"psr": None}}, "methods.dualread.parents.pre: 'psr' is not in methods."),
    ({"methods": {"psr": {"transfer": {"method": "x"}}}}, "methods.psr.transfer.method: 'x' is not in methods."),
    ({"tables": {"main": {"without": ["x"]}}}, "tables.main.without: 'x' is not in methods."),
    ({"actors": {"x": {"label": "X", "same_as": "y"}}}, "actors.x.same_as: 'y' is not in actors."),
    (
        {"actors": {"rlvr": {"checkpoints": {"x": {17: {"folder": "."}}}}}},
        "actors.rlvr.checkpoints: 'x' is not in backbones.",
    ),
    ({"only": {"datasets": ["x"]}}, "only.datasets: 'x' is not in datasets."),
    (
        {"backbones": {"medgemma-tiny": {"source": {"pretrain": {"pool": {"dataset": "x"}}}}}},
        "backbones.medgemma-tiny.source.pretrain.pool.dataset: 'x' is not in datasets.",
    ),
    (
        {"views": {"x": {"groups": {"by": "embedding", "of": ["y"], "threshold": 0.5, "source": {"folder": "z"}}}}},
        "views.x.groups.of: 'y' is not in views.",
    ),
    # plugins that nobody has
    ({"phantoms": {"slake": {"format": "x"}}}, "phantoms.slake.format: 'x': no such plugin in lib/dualread/training/w"),
    ({"actors": {"rlvr": {"training": "x"}}}, "actors.rlvr.training: 'x': no such plugin in lib/dualread/training."),
    (
        {"actors": {"rlvr": {"reward": "x"}}},
        "actors.rlvr.reward: 'x': no such plugin in lib/dualread/training/rewards.",
    ),
    (
        {"conditions": {"donor": {"contract": "x"}}},
        "conditions.donor.contract: 'x': no such plugin in lib/dualread/grad",
    ),
    (
        {"backbones": {"medgemma-tiny": {"source": {"pretrain": {"pool": {"name": "x"}}}}}},
        "backbones.medgemma-tiny.source.pretrain.pool.name: 'x': no such plugin in lib/dualread/training/corpora.",
    ),
    # values that break a section
    ({"seeds": [17.0]}, "seeds.0: 17.0 is not of type integer."),
    ({"seeds": [True]}, "seeds.0: True is not of type integer."),
    ({"datasets": {"slake": {"id": 1}}}, "datasets.slake.id: 1 is not of type boolean."),
    ({"replay": {"kappa": 0}}, "replay.kappa: 0 is less than or equal to the minimum of 0"),
    ({"replay": {"kappa": float("nan")}}, "replay.kappa: nan: "),
    ({"replay": {"agreement": {"max_argmax_mismatch_share": 2}}}, "share: 2 is greater than the maximum of 1"),
    ({"store": ""}, "store: '': "),
    ({"methods": 3}, "methods: 3 is not of type mapping."),
    ({"methods": {"psr": []}}, "methods.psr: [] is not of type mapping."),
    ({"tables": {"main": {"without": {"psr": 1}}}}, "tables.main.without: {'psr': 1} is not of type list."),
    ({"tables": {"main": {"without": []}}}, "tables.main.without: []: "),
    ({"datasets": {"slake": {"source": {"phantom": None}}}}, "datasets.slake.source: is empty. Expected at least"),
    ({"datasets": {"slake": {"select": {}}}}, "datasets.slake.select: is empty. Expected at least one of: answer"),
    ({"views": {"new": {}}}, "views.new: has nothing. Expected `decoding`, `choices` or `groups`, or else"),
    (
        {"views": {"samples": {"choices": {"words": ["a", "b"]}}}},
        "views.samples: has ['decoding', 'choices']. Expected `decoding`, `choices`",
    ),
    ({"views": {"p_true": {"choices": {"integers": [0, 1]}}}}, "has ['integers', 'words']. Expected one of"),
    ({"actors": {"rlvr": {"reward": None}}}, "actors.rlvr: has ['settings', 'training'] of `training`, `reward`"),
    (
        {"conditions": {"donor": {"completions": "original"}}},
        "conditions.donor: has `completions` and no `control`.",
    ),
    ({"conditions": {"original": None}}, "'shuffled_image']. Add `original`: every study"),
    ({"actors": {"rlvr": {"checkpoints": {"b": {"x": {}}}}}}, "actors.rlvr.checkpoints.b: 'x': "),
    ({"phantoms": {"A b": {}}}, "phantoms: 'A b' is not of the form "),
    # only the alternative that was meant is explained
    (
        {"datasets": {"slake": {"roles": {"train": {"calib": 0.3}}}}},
        "datasets.slake.roles.train: 'calib' is not allowed. Known: fit, stop, calibration, ",
    ),
    (
        {"datasets": {"slake": {"roles": {"train": {"fit": "x"}}}}},
        "datasets.slake.roles.train.fit: 'x' is not of type number.",
    ),
    (
        {"datasets": {"slake": {"roles": {"train": "fitt"}}}},
        "datasets.slake.roles.train: 'fitt' is not allowed. Known: fit, stop, calibration, ",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_is_refused_is_named_with_its_place(changes, message):
    assert message in problems(changes)


# Names, and the nearest one of those that are known.
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


def test_a_name_that_is_no_text_is_refused_where_plugins_check_no_settings():
    with pytest.raises(ConfigError, match=r"actors\.rlvr\.settings\.draws_as: 3 is not in actors\."):
        resolve(merged(EMBEDDED, {"actors": {"rlvr": {"settings": {"draws_as": 3}}}}), with_plugins=False)


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


# Settings of plugins.
def test_the_settings_of_an_engine_are_checked():
    engine = {"engine": "vllm_engine", "settings": {"max_num_seqs": 0}}
    message = problems({"generation": engine})
    assert "generation.settings.batch_size: unknown key. Known: eager, gpu_memory_utilization, max_num_seqs." in message
    assert "generation.settings.max_num_seqs: 0 is less than the minimum of 1" in message
    message = problems({"machine": {"vllm": "rocm"}})
    assert "config.yaml: machine.vllm: 'rocm' is not allowed. Known: cuda, cpu." in message


def test_a_layout_may_have_several_nodes():
    assert resolve(merged(EMBEDDED, of_training(shard="optimizer", processes=4, nodes=2)))


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


# Nulls, and text that YAML reads as something else.
def test_a_null_removes_an_entry_at_any_depth():
    assert without_nulls({"a": None, "b": {"c": None, "d": [1, {"e": None}]}}) == {"b": {"d": [1, {}]}}


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


@pytest.mark.parametrize(
    ("text", "number"),
    [("5e-5", "5.0e-5"), ("1e5", "1.0e+5"), ("1E-3", "1.0e-3"), ("1e+2", "1.0e+2"), ("2.5e3", "2.5e+3")],
)
def test_a_power_of_ten_that_yaml_reads_as_text_is_explained(text, number):
    message = problems(yaml.safe_load(f"actors: {{rlvr: {{settings: {{learning_rate: {text}}}}}}}"))
    assert f"rlvr.settings.learning_rate: {text!r} is not of type number." in message
    assert f"YAML reads {text} as text; write {number}." in message
    assert yaml.safe_load(number) == float(text)
    message = problems(yaml.safe_load(f"replay: {{kappa: {text}}}"))
    assert f"YAML reads {text} as text; write {number}." in message


def test_an_integer_is_written_without_a_power_of_ten():
    message = problems(yaml.safe_load("actors: {rlvr: {settings: {steps: 1e3}}}"))
    assert "YAML reads 1e3 as text; write 1000." in message
    message = problems(yaml.safe_load("actors: {rlvr: {settings: {steps: many}}}"))
    assert "YAML reads" not in message
