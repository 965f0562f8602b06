"""What `dualread new` takes from a checkpoint's own files."""

import json
from pathlib import Path

import pytest
import yaml

from dualread.errors import ArtifactError
from dualread.models.backbones.user_model import look as look_at_model
from tests import families, more_families
from tests.apps.new.checkpoints import GEMMA, QWEN, checkpoint

ROOT = Path(__file__).parents[3]


def test_the_size_is_that_of_the_papers_models(tmp_path):
    """workflow/studies/paper.yaml has the same numbers, but for rounded parameters."""
    paper = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text())["backbones"]
    for folder, config, shape, name in (
        ("a", QWEN, (2_128, 1_000_000), "qwen3-vl-2b"),
        ("b", GEMMA, (43, 10**8), "medgemma-1.5-4b"),
    ):
        entry = look_at_model(str(checkpoint(tmp_path / folder, config, shape))).entry
        assert entry["size"] == paper[name]["size"]
        for key in ("min_pixels", "max_pixels"):
            assert entry["settings"][key] == paper[name]["settings"][key]


def test_what_is_no_checkpoint_is_refused(tmp_path):
    """`tests/security/test_new.py` tries files of any form."""
    mine = tmp_path / "mine"
    text = checkpoint(tmp_path / "text", {"model_type": "qwen3", **QWEN["text_config"]})
    for make, folder, said in (
        (lambda: None, mine, "no such folder"),
        (mine.mkdir, mine, r"no file config\.json"),
        (lambda: (mine / "config.json").write_text(json.dumps(QWEN)), mine, r"no \*\.safetensors"),
        (lambda: (mine / "adapter_config.json").write_text("{}"), mine, "a LoRA or other PEFT adapter"),
        (lambda: None, text, r"model_type is 'qwen3'\. Expected a model that transformers opens"),
    ):
        make()
        with pytest.raises(ArtifactError, match=said):
            look_at_model(str(folder))


@pytest.mark.parametrize(
    ("name", "pixels", "per_token"),
    [
        ("llava", (1024, 1024), 64),  # 32 x 32 pixels are 16 patches of 8 x 8, and as many tokens
        ("idefics3", (3072, 5120), 256),  # 2 to 4 tiles and the whole, each of 4 tokens of 2 x 2 patches
        ("paligemma", (1024, 1024), 64),
    ],
)
def test_a_checkpoints_own_processor_says_how_large_images_are(name, pixels, per_token, tmp_path):
    """What LLaVA's config.json leaves out is what transformers adds to it."""
    folder = families.build(name, tmp_path / name)
    found = look_at_model(str(folder)).entry
    assert tuple(found["settings"][limit] for limit in ("min_pixels", "max_pixels")) == pixels
    assert (found["size"]["pixels_per_token"], found["size"]["hidden_size"]) == (per_token, 32)


def test_a_model_that_names_no_size_of_images_takes_any(tmp_path):
    """Gemma 4: a token stands for 2 x 2 patches of 8 x 8 pixels, 256 pixels in all."""
    model = look_at_model(str(more_families.build("gemma4", tmp_path / "mine")))
    assert "those of the paper's study, for `dualread plan` alone" in model.settings_from
    assert (model.entry["size"]["patches_per_token"], model.entry["size"]["pixels_per_token"]) == (4, 256)


IMAGES = {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 16, "merge_size": 2}


def _looked(folder, config=QWEN, **files):
    checkpoint(folder, config)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    found = look_at_model(str(folder))
    settings = found.entry["settings"]
    return (settings["min_pixels"], settings["max_pixels"]), settings, found


PREPROCESSOR, PROCESSOR = "preprocessor_config", "processor_config"
LARGE, SMALL = {"shortest_edge": 65536, "longest_edge": 16777216}, {"shortest_edge": 4096, "longest_edge": 8192}
OF_PAPER = "those of the paper's study, because there is no processor_config.json or prepro"


@pytest.mark.parametrize(
    ("name", "content", "pixels", "source"),
    [
        (PROCESSOR, {"image_processor": {**IMAGES, "size": SMALL}}, (4096, 8192), "processor_config.json"),
        (PREPROCESSOR, {**IMAGES, "size": LARGE}, (65536, 16777216), "preprocessor_config.json"),
        # Qwen2-VL and Qwen2.5-VL name them so, and these win over a size.
        (PREPROCESSOR, {**IMAGES, "min_pixels": 3136, "max_pixels": 12845056}, (3136, 12845056), "prep"),
        (PREPROCESSOR, {**IMAGES, "min_pixels": 3136, "max_pixels": 50176, "size": SMALL}, (3136, 50176), "prep"),
        # The class of transformers has 56 x 56 and 28 x 28 x 1280.
        (PREPROCESSOR, IMAGES, (3136, 1003520), "the defaults of Qwen2VLImageProcessor: preprocessor_config.json has"),
        (None, {}, (65536, 1310720), OF_PAPER),
    ],
)
def test_the_limits_of_images_are_the_checkpoints_own(tmp_path, name, content, pixels, source):
    found, settings, model = _looked(tmp_path / "mine", **({name: content} if name else {}))
    assert found == pixels
    assert f"pixels of an image: {source}" in model.lines[1]
    assert source.split(":")[0] in model.settings_from
    # Room for the largest image, with a token for 32 x 32 pixels, and for 1024 tokens of text; the paper's at least.
    assert settings["max_prompt_tokens"] == max(4096, pixels[1] // 1024 + 1024)


def test_a_broken_file_of_the_processor_is_refused(tmp_path):
    checkpoint(tmp_path / "mine")
    (tmp_path / "mine/preprocessor_config.json").write_text(json.dumps({**IMAGES, "size": {"height": 64}}))
    with pytest.raises(ArtifactError, match=r"mine: the image processor cannot be read"):
        look_at_model(str(tmp_path / "mine"))


@pytest.mark.parametrize(
    ("changes", "dtype", "source"),
    [
        ({"torch_dtype": "bfloat16"}, "bfloat16", "config.json"),
        ({"dtype": "float32"}, "float32", "config.json"),
        ({"text_config": {**QWEN["text_config"], "dtype": "bfloat16"}}, "bfloat16", "config.json"),
        ({"dtype": "float16"}, "float32", "config.json says float16, which float32 holds exactly; bfloat16 takes half"),
        ({}, "float32", "its *.safetensors, as config.json names none"),  # their head says F32
    ],
)
def test_the_type_of_the_weights_is_the_checkpoints_own(tmp_path, changes, dtype, source):
    _, settings, model = _looked(tmp_path / "mine", QWEN | changes)
    assert settings["dtype"] == dtype
    assert f"; {dtype}: {source}" in model.lines[1]


def test_a_model_of_the_hub_is_looked_up(tmp_path, monkeypatch):
    import huggingface_hub

    class Info:
        sha = "b" * 40
        safetensors = type("Safetensors", (), {"total": 7, "parameters": {"F32": 3, "BF16": 4}})
        siblings = tuple(type("File", (), {"rfilename": one}) for one in ("config.json", "preprocessor_config.json"))

    (tmp_path / "config.json").write_text(json.dumps(QWEN))
    limits = {"shortest_edge": 65536, "longest_edge": 131072}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({**IMAGES, "size": limits}))
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda self, name, revision: Info())
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda name, file, revision: str(tmp_path / file))
    found = look_at_model("Qwen/Qwen3-VL-2B-Instruct@main")
    assert found.entry["source"] == {"hub": "Qwen/Qwen3-VL-2B-Instruct", "revision": "b" * 40}
    assert (found.name, found.entry["size"]["parameters"]) == ("qwen3-vl-2b-instruct", 7.0)
    settings = found.entry["settings"]
    assert (settings["min_pixels"], settings["max_pixels"], settings["dtype"]) == (65536, 131072, "bfloat16")
