"""Damage of checkpoints, and what has to refuse or accept one."""

import json
from functools import partial

import pytest
import torch
from safetensors.torch import load_file, save_file

from dualread.errors import ArtifactError
from dualread.models.backbones.checkpoint import check, load, open_checkpoint
from dualread.schema.backbones import CopyCheckpointSpec
from dualread.stages import copy_checkpoint
from tests.tiny import MODEL

# The name of one weight in the file and in the model.
EMBEDDINGS = {
    "qwen3_vl": "model.language_model.embed_tokens.weight",
    "gemma3": "language_model.model.embed_tokens.weight",
}

OF_THE_MODEL = "model.language_model.embed_tokens.weight"


def edit_weights(folder, edit):
    """Replace the weights {name: tensor} by the result of `edit`."""
    edited = edit(load_file(folder / "model.safetensors"))
    save_file(edited, folder / "model.safetensors", metadata={"format": "pt"})


def without(tensors, *names):
    return {name: tensor for name, tensor in tensors.items() if name not in names}


def edit_json(file, edit):
    entries = json.loads(file.read_text())
    edit(entries)
    file.write_text(json.dumps(entries))


def shard(folder, n_files=2):
    """Write the weights to several files with an index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    files = {name: f"model-{i % n_files + 1:05}-of-{n_files:05}.safetensors" for i, name in enumerate(names)}
    for file in set(files.values()):
        held = {name: tensors[name] for name in names if files[name] == file}
        save_file(held, folder / file, metadata={"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))


def copied(tiny, folder, out):
    """Copy the folder's checkpoint into a study."""
    out.mkdir()
    return copy_checkpoint.compute(CopyCheckpointSpec(model=MODEL), {"source": folder}, out)


def refusals(tiny, folder, openings):
    """Return the message of each way to copy or open the checkpoint; all of them have to refuse it."""
    said = []
    out = folder.parent / "out"
    for attempt in (
        lambda: copied(tiny, folder, out),
        lambda: check(folder, MODEL),
        *(partial(opened, folder, MODEL) for opened in openings),
    ):
        with pytest.raises(ArtifactError) as refused:
            attempt()
        said.append(str(refused.value))
    assert not list(out.iterdir())  # nothing is copied before the check
    return said


def assert_refused(tiny, folder, *expected, openings=(load, open_checkpoint)):
    for said in refusals(tiny, folder, openings):
        assert str(folder) in said
        for words in expected:
            assert words in said


def assert_accepted(tiny, folder):
    """The folder is accepted, and every weight equals that of the complete checkpoint."""
    copied(tiny, folder, folder.parent / "out")
    opened = open_checkpoint(folder.parent / "out" / "checkpoint", MODEL)
    whole = load(tiny.checkpoint, MODEL).state_dict()
    assert opened.model.state_dict().keys() == whole.keys()
    for name, weight in opened.model.state_dict().items():
        torch.testing.assert_close(weight, whole[name], atol=1e-2, rtol=1e-2)
