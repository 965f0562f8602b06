"""A shared model never runs Python of its own, and nobody is asked whether it may (D2; auto_map held elsewhere)."""

import ast
import contextlib
import json
import shutil

import pytest

from dualread.errors import DualReadError
from dualread.models.adapters import merge
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.backbones.processor import load_processor
from tests import families
from tests.models.backbones.damage import edit_json
from tests.test_trust import LIBRARY
from tests.tiny import MODEL

CODE = "from pathlib import Path\nPath({marker!r}).write_text('ran')\nclass X: pass\nX.from_pretrained = X\n"
AUTO_MAP = {
    "image processor": {"processor_config.json": {"auto_map": {"AutoImageProcessor": "ip.X"}}},
    "image processor of an unknown type": {
        "processor_config.json": {
            "image_processor": {"image_processor_type": "X", "auto_map": {"AutoImageProcessor": "ip.X"}}
        },
        "preprocessor_config.json": {"image_processor_type": "X", "auto_map": {"AutoImageProcessor": "ip.X"}},
    },
    "processor": {"processor_config.json": {"processor_class": "X", "auto_map": {"AutoProcessor": "ip.X"}}},
    "tokenizer": {"tokenizer_config.json": {"tokenizer_class": "X", "auto_map": {"AutoTokenizer": ["ip.X", "ip.X"]}}},
    "configuration": {"config.json": {"auto_map": {"AutoConfig": "ip.X", "AutoModelForImageTextToText": "ip.X"}}},
    "configuration of an unknown type": {"config.json": {"model_type": "x", "auto_map": {"AutoConfig": "ip.X"}}},
    "generation": {"generation_config.json": {"custom_generate": "."}},
}


@pytest.fixture
def asked(monkeypatch):
    """Whoever asks is told yes."""
    questions = []
    monkeypatch.setattr("builtins.input", lambda question="": questions.append(question) or "y")
    return questions


@pytest.mark.parametrize("kind", AUTO_MAP)
def test_a_checkpoint_with_code_runs_none_and_asks_nobody(plain, tmp_path, asked, kind):
    folder, marker = shutil.copytree(plain, tmp_path / "mine"), tmp_path / "marker"
    for name in ("ip.py", "custom_generate/generate.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(CODE.format(marker=str(marker)) + "def generate(*a, **b): pass\n")
    for name, entries in AUTO_MAP[kind].items():
        if not (folder / name).exists():
            (folder / name).write_text("{}")
        edit_json(folder / name, lambda found, entries=entries: found.update(entries))
    for attempt in (load_processor, open_checkpoint):
        with contextlib.suppress(DualReadError):
            attempt(folder, families.SETTINGS)
    assert asked == []
    assert not marker.exists()


def test_an_adapter_with_code_runs_none_and_asks_nobody(plain, tmp_path, asked):
    adapter, marker = tmp_path / "adapter", tmp_path / "marker"
    adapter.mkdir()
    (adapter / "ip.py").write_text(CODE.format(marker=str(marker)))
    entries = {"peft_type": "LORA", "auto_mapping": {"base_model_class": "X", "parent_library": "ip"}, "r": 1}
    (adapter / "adapter_config.json").write_text(json.dumps({**entries, "target_modules": ["q_proj"]}))
    shutil.copy(plain / "model.safetensors", adapter / "adapter_model.safetensors")
    with pytest.raises(DualReadError):
        merge(adapter, plain, tmp_path / "out", MODEL)
    assert asked == []
    assert not marker.exists()


@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation", "experts_implementation"])
@pytest.mark.parametrize("part", [None, "text_config"])
def test_a_configuration_cannot_name_code_of_the_hub(plain, tmp_path, name, part):
    folder = shutil.copytree(plain, tmp_path / "mine")
    edit_json(folder / "config.json", lambda of: (of if part is None else of[part]).update({name: "someone/kernel"}))
    with pytest.raises(DualReadError, match=f"{name} is 'someone/kernel', code that would be downloaded"):
        load_processor(folder, families.SETTINGS)


def test_whatever_opens_files_of_others_says_that_their_code_is_not_trusted():
    """transformers asks where the argument is missing."""
    missing = []
    for path in sorted(LIBRARY.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".from_pretrained"):
                given = {argument.arg for argument in node.keywords}
                if "trust_remote_code" not in given and not ast.unparse(node.func).startswith(
                    ("PeftConfig", "Generation")
                ):
                    missing.append(f"{path.relative_to(LIBRARY)}:{node.lineno}")
    # `quantized` passes on what `checkpoint.load` gives it.
    assert [place for place in missing if not place.startswith("models/quantized.py")] == []
