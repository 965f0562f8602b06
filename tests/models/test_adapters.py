"""LoRA adapters: merged as peft alone applies them, and refused unless every tensor has its place."""

import json
import shutil

import numpy as np
import peft
import pytest
import torch
from safetensors.torch import load_file, save_file

from dualread.errors import ArtifactError
from dualread.models import own_pass
from dualread.models.adapters import merge
from dualread.models.backbones.checkpoint import load, open_checkpoint
from dualread.schema.backbones import AdapterSpec, CopyCheckpointSpec
from dualread.stages import copy_checkpoint
from tests import families
from tests.architectures import both
from tests.tiny import MODEL, build, image

pytestmark = pytest.mark.rest

WEIGHTS = "adapter_model.safetensors"
NEW = "base_model.model.model.language_model."
# Under which names versions of transformers before the present one had the language model, so that peft saved it so.
OLDER = {
    "qwen3_vl": ["base_model.model.language_model."],
    "gemma3": ["base_model.model.language_model.model."],
    "qwen2_5_vl": ["base_model.model.model.", "base_model.model.language_model."],
    "llava": ["base_model.model.language_model.model."],
}
SAID = ["yes, upper left", "<answer>no</answer>"]


def adapt(checkpoint, folder, *, std=0.1, **changes):
    """Write an adapter with peft alone; return the adapted model."""
    settings = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "exclude_modules": r".*(vision|visual).*"}
    adapted = peft.get_peft_model(load(checkpoint, MODEL), peft.LoraConfig(**{**settings, **changes}))
    torch.manual_seed(1)
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=std)
    adapted.save_pretrained(folder)
    return adapted.eval()


@pytest.fixture
def adapter(tiny, tmp_path):
    adapt(tiny.checkpoint, tmp_path / "adapter")
    return tmp_path / "adapter"


def edit(adapter, change):
    save_file(change(load_file(adapter / WEIGHTS)), adapter / WEIGHTS)


def differences(one, other, encoder):
    """Differences of log-probabilities in nats, row by row, by transformers alone."""
    for seed, text in enumerate(["Is this a CT scan?", "What is the size of the lesion?", "Where?"]):
        inputs = encoder.inputs(text, [image(seed)])
        for said in SAID:
            ids = encoder.tokenizer(said, add_special_tokens=False)["input_ids"]
            with torch.no_grad():
                first, second = (own_pass.log_probs(model, inputs, ids, 0) for model in (one, other))
            yield float(np.abs(first - second).max())


@both
@pytest.mark.parametrize("changes", [{}, {"use_rslora": True}, {"use_dora": True}], ids=["lora", "rslora", "dora"])
def test_the_merged_checkpoint_is_the_adapted_model_row_by_row(tiny, tmp_path, changes):
    adapt(tiny.checkpoint, tmp_path / "adapter", **changes)
    base, encoder = tiny.load()
    adapted = peft.PeftModel.from_pretrained(base, tmp_path / "adapter").eval().get_base_model()
    n_modules = merge(tmp_path / "adapter", tiny.checkpoint, tmp_path / "merged", MODEL)
    assert n_modules == 7 * 4  # linear layers of each of four layers
    merged = load(tmp_path / "merged", MODEL)
    assert max(differences(adapted, merged, encoder)) < 1e-5
    assert min(differences(load(tiny.checkpoint, MODEL), merged, encoder)) > 1e-3
    kept = {path.name for path in tiny.checkpoint.iterdir()}
    assert {path.name for path in (tmp_path / "merged").iterdir()} == kept


def test_the_sums_are_stored_in_the_dtype_in_which_the_model_is_opened(tiny, adapter, tmp_path):
    merge(adapter, tiny.checkpoint, tmp_path / "exact", MODEL)
    merge(adapter, tiny.checkpoint, tmp_path / "small", {**MODEL, "dtype": "bfloat16"})
    exact, small = (load_file(tmp_path / name / "model.safetensors") for name in ("exact", "small"))
    assert {tensor.dtype for tensor in small.values()} == {torch.bfloat16}
    assert all(torch.equal(tensor.bfloat16(), small[name]) for name, tensor in exact.items())


@pytest.mark.filterwarnings("ignore::UserWarning")  # of peft, about weights that are tied
@pytest.mark.parametrize(("family", "older"), [(family, name) for family in OLDER for name in OLDER[family]])
def test_names_of_older_versions_of_transformers_are_translated(family, older, tmp_path):
    base = tmp_path / "base"
    families.build(family, base) if family in families.FAMILIES else build(family, base)
    adapt(base, tmp_path / "new", target_modules=["q_proj", "v_proj"], modules_to_save=["embed_tokens"])
    shutil.copytree(tmp_path / "new", tmp_path / "old")
    edit(tmp_path / "old", lambda tensors: {name.replace(NEW, older): tensor for name, tensor in tensors.items()})
    assert all(name.startswith(older) for name in load_file(tmp_path / "old" / WEIGHTS))
    new, old = (tmp_path / f"merged {name}" for name in ("new", "old"))
    merge(tmp_path / "new", base, new, MODEL)
    merge(tmp_path / "old", base, old, MODEL)
    assert (new / "model.safetensors").read_bytes() == (old / "model.safetensors").read_bytes()


def configure(adapter, **entries):
    file = adapter / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))


def half(tensors):
    return dict(sorted(tensors.items())[: len(tensors) // 2])


# By name: what is done to the adapter's tensors, and what the refusal says.
WRONG = {
    "of more layers": (
        lambda tensors: {name.replace("layers.0.", "layers.9."): t for name, t in tensors.items()},
        r"14 tensors have no place in the model, .*; 14 tensors of modules that its configuration names are missing",
    ),
    "half a file": (half, r"28 tensors of modules that its configuration names are missing, such as .*layers\.2"),
    "another width": (
        lambda tensors: {n: t[:, :-1].contiguous() if ".lora_A" in n else t for n, t in tensors.items()},
        r"28 tensors have another shape",
    ),
    "untrained": (
        lambda tensors: {n: t * 0 if ".lora_B" in n else t for n, t in tensors.items()},
        r"all its changes are zero",
    ),
    "diverged": (lambda tensors: {n: t * torch.nan for n, t in tensors.items()}, r"NaN|nan"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_adapter_is_refused_with_one_sentence(tiny, adapter, tmp_path, wrong):
    change, said = WRONG[wrong]
    edit(adapter, change)
    with pytest.raises(ArtifactError, match=rf"^\S*adapter: .*{said}.* Expected ") as caught:
        merge(adapter, tiny.checkpoint, tmp_path / "merged", MODEL)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "merged").exists()


def test_a_file_that_was_cut_off_is_refused(tiny, adapter, tmp_path):
    whole = (adapter / WEIGHTS).read_bytes()
    (adapter / WEIGHTS).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ArtifactError, match=r"adapter_model\.safetensors: damaged or cut off at \d+ bytes"):
        merge(adapter, tiny.checkpoint, tmp_path / "merged", MODEL)


def test_the_adapter_of_another_base_is_refused(tiny, adapter, tmp_path):
    other = build(tiny.family, tmp_path / "other", hidden_size=64)
    with pytest.raises(ArtifactError, match=r"adapter: not an adapter of \S+other: 44 tensors have another shape"):
        merge(adapter, other.checkpoint, tmp_path / "merged", MODEL)
    configure(adapter, base_model_name_or_path="a/b")
    with pytest.raises(ArtifactError, match=r"its base is a/b, and this one is c/d\. Expected the adapter's own"):
        merge(adapter, tiny.checkpoint, tmp_path / "merged", MODEL, base_name="c/d")
    configure(adapter, target_modules=["query_key_value"])
    with pytest.raises(
        ArtifactError, match=r"adapter: not an adapter of .*: peft cannot place its target_modules there "
    ):
        merge(adapter, tiny.checkpoint, tmp_path / "merged", MODEL)


APART = {"modules_to_save": ["lm_head", "embed_tokens"]}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of peft, about weights that are tied
@pytest.mark.parametrize(
    ("changes", "is_tied"),
    [
        (APART, False),
        ({**APART, "ensure_weight_tying": True}, True),
        ({"target_modules": ["lm_head"]}, False),
        ({"trainable_token_indices": [3, 5]}, True),
    ],
    ids=["saved apart", "saved as one", "head", "tokens"],
)
def test_weights_that_the_base_ties_are_stored_apart_where_the_adapter_makes_them_differ(
    tiny, tmp_path, changes, is_tied
):
    adapt(tiny.checkpoint, tmp_path / "adapter", **changes)

    def change(tensors):
        moved = (n for n in sorted(tensors) if ".lora_A" not in n and ".base_layer." not in n)
        return tensors | {n: tensors[n] + 0.1 * torch.randn(tensors[n].shape) for n in moved}

    edit(tmp_path / "adapter", change)
    base, encoder = tiny.load()
    adapted = peft.PeftModel.from_pretrained(base, tmp_path / "adapter").eval().get_base_model()
    merge(tmp_path / "adapter", tiny.checkpoint, tmp_path / "merged", MODEL)
    merged = load(tmp_path / "merged", MODEL)
    assert max(differences(adapted, merged, encoder)) < 1e-5
    assert merged.config.tie_word_embeddings == is_tied


@pytest.mark.filterwarnings("ignore::UserWarning")  # of peft, about the same
@pytest.mark.parametrize("name", ["lm_head", "embed_tokens"])
def test_a_changed_head_or_embedding_comes_with_the_weights_of_the_base(name, tmp_path):
    """Where they are not tied, peft saves the base's beside the changes; other ones would be those of another base."""
    untied = families.write(untied_llava, tmp_path / "base")
    adapted = adapt(untied, tmp_path / "adapter", target_modules=["q_proj", name])
    assert any(f"{name}.base_layer.weight" in tensor for tensor in load_file(tmp_path / "adapter" / WEIGHTS))
    merge(tmp_path / "adapter", untied, tmp_path / "merged", MODEL)
    merged, encoder = load(tmp_path / "merged", MODEL), open_checkpoint(untied, families.SETTINGS).encoder
    assert max(differences(adapted.get_base_model(), merged, encoder)) < 1e-5
    edit(tmp_path / "adapter", lambda tensors: {n: 2 * t if ".base_layer." in n else t for n, t in tensors.items()})
    with pytest.raises(ArtifactError, match=rf"1 tensors have no place in the model, .*{name}\.base_layer\.weight"):
        merge(tmp_path / "adapter", untied, tmp_path / "again", MODEL)


def untied_llava(scale):
    model, processor = families.FAMILIES["llava"](scale)
    config = model.config
    config.tie_word_embeddings = config.text_config.tie_word_embeddings = False
    return type(model)(config), processor


@pytest.mark.filterwarnings("ignore::UserWarning")  # of peft, about the same
def test_a_bias_that_the_base_lacks_is_refused(tiny, tmp_path):
    adapt(tiny.checkpoint, tmp_path / "adapter", target_modules=["down_proj"], lora_bias=True)
    with pytest.raises(ArtifactError, match=r"cannot be added to weights \(RuntimeError: Impossible to merge"):
        merge(tmp_path / "adapter", tiny.checkpoint, tmp_path / "merged", MODEL)


def test_the_stage_merges_an_adapter_into_a_folder_or_into_the_base(tiny, adapter, tmp_path):
    spec = CopyCheckpointSpec(model=MODEL, adapter=AdapterSpec())
    shutil.copytree(tiny.checkpoint, tmp_path / "actor" / "checkpoint")
    for name, inputs in (("one", {"source": tiny.checkpoint}), ("two", {"base": tmp_path / "actor"})):
        (tmp_path / name).mkdir()
        said = copy_checkpoint.compute(spec, {**inputs, "adapter": adapter}, tmp_path / name)
        assert said.startswith(f"merged an adapter of 28 modules ({adapter}) into ")
        assert ("differs" in said) == (name == "two")
        (adapter / "chat_template.jinja").write_text("that of another base")
    one, two = ((tmp_path / name / "checkpoint" / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two
    assert one != (tiny.checkpoint / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"init_lora_weights": "pissa_niter_4"}, r"init_lora_weights is pissa_niter_4, with which peft takes random"),
        (None, r"peft_type is None\. Expected LORA"),
        ({"lora_alpha": None}, r"cannot place its target_modules there \(TypeError: "),
    ],
)
def test_a_configuration_that_does_not_say_what_the_adapter_changes_is_refused(tiny, adapter, tmp_path, changes, said):
    (adapter / "adapter_config.json").write_text("{}") if changes is None else configure(adapter, **changes)
    with pytest.raises(ArtifactError, match=said):
        merge(adapter, tiny.checkpoint, tmp_path / "merged", MODEL)
