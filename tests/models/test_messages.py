"""What models, services and trainings say about what they refuse: messages.txt has one message per case.

What depends on a whole model, such as the names of its tensors, is in the tests of backbones, adapters and training.
"""

import json
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import torch
from safetensors.torch import save_file

from dualread.artifacts.tables import from_rows
from dualread.models.adapters import _config
from dualread.models.backbones._checkpoint_files import read_config, weight_files
from dualread.models.conditions import Asked, asked
from dualread.models.hints import misleading
from dualread.models.replay import agreement
from dualread.models.service.replies import reply_of
from dualread.models.service.requests import requests_of
from dualread.models.service.responses import Found, read_responses, reply_in
from dualread.schema.answers import Choices, Service
from dualread.schema.columns import GENERATIONS
from dualread.schema.replay import Agreement
from dualread.stages._asked import forced
from dualread.training import _arguments, _reference, _rollouts
from tests import golden
from tests.models.service.test_replies import body, choice, logprobs
from tests.models.test_conditions import PROMPT, manifest, pairs
from tests.models.test_hints import manifest as questions
from tests.models.test_hints import row
from tests.specs import image, shard
from tests.stages import shards
from tests.training.test_order import settings

LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 4321\n"
# The files of a folder in place of a checkpoint: {case: {name: text}}.
CONFIGS = {
    "a checkpoint: an adapter": {"adapter_config.json": "{}"},
    "a checkpoint: a pointer of Git LFS": {"tokenizer.json": LFS},
    "a checkpoint: no config.json": {"other.json": "{}"},
    "a checkpoint: a web page": {"config.json": "<html>"},
    "a checkpoint: a list": {"config.json": "[]"},
    "a checkpoint: quantized": {"config.json": '{"quantization_config": {}}'},
    "a checkpoint: an unknown model": {"config.json": '{"model_type": "resnet"}'},
    "a checkpoint: a million layers": {"config.json": '{"num_hidden_layers": 1000000}'},
    "a checkpoint: code of the hub": {"config.json": '{"attn_implementation": "someone/kernel"}'},
    "an adapter: of another kind": {"adapter_config.json": '{"peft_type": "IA3"}'},
    "an adapter: without weights": {"adapter_config.json": '{"peft_type": "LORA"}'},
}
INDEX = "model.safetensors.index.json"
WEIGHTS = {
    "weights: none": {"config.json": "{}"},
    "weights: an index without metadata": {INDEX: '{"weight_map": {"a": "b"}}'},
    "weights: an index of nothing": {INDEX: '{"metadata": {}, "weight_map": {}}'},
    "weights: a file is missing": {INDEX: '{"metadata": {}, "weight_map": {"a": "b", "c": "d"}}', "b": ""},
    "weights: a web page": {"model.safetensors": "<html>not found"},
}
REPLIES = {
    "a reply: nothing": (None, 1, False),
    "a reply: a web page": ("<html>", 1, False),
    "a reply: choices that are no list": ({"choices": {}}, 1, False),
    "a reply: no choice": (body(), 1, False),
    "a reply: a choice too many": (body(choice(), choice(index=1)), 1, False),
    "a reply: the same choice twice": (body(choice(), choice(index=0)), 2, False),
    "a reply: a choice without a number": (body(choice(), choice(index=None)), 2, False),
    "a reply: a choice without a message": (body({"text": "yes"}), 1, False),
    "a reply: a message of nothing": (body(choice(None)), 1, False),
    "a reply: a message that is no text": (body(choice(["yes"])), 1, False),
    "a reply: half a character": (body(choice("\ud800")), 1, False),
    "a reply: log-probabilities are missing": (body(choice()), 1, True),
    "a reply: no log-probabilities": (body(choice(logprobs=None)), 1, True),
    "a reply: log-probabilities of another text": (body(choice(**logprobs(("no", -1.0)))), 1, True),
    "a reply: a log-probability above 0": (body(choice(**logprobs(("yes", 0.5)))), 1, True),
}
LINES = {
    "a line: neither a response nor an error": {},
    "a line: an error": {"error": {"message": "no\nmoney"}},
    "a line: an error of HTTP": {"response": {"status_code": 429, "body": {"error": {"message": "too many"}}}},
}
QUESTION = Asked(sample_id="d/test/0", text="Is it?", image_files=["images/0.png"], image_id="0")
SERVICE = Service(model="m", log_probs=False, body={})
BOUNDS = Agreement(max_mean_log_prob_difference=0.001, max_argmax_mismatch_share=0.01, argmax_tolerance=0.1)
ANSWERS = from_rows(
    [shards.generation(f"slake/test/000{i}", "text", image_id=f"image {i}") for i in range(3)], GENERATIONS
)
REPLAYED = pl.DataFrame(
    {
        "sample_id": ["a", "b"],
        "token_log_probs": [[-1.0, -2.0], [-1.0, -2.0]],
        "log_prob_mean_difference": [0.25, 0.5],
        "argmax_mismatches": [0, 1],
    }
)


def trained(value: float) -> partial:
    """What a trainer says about one token, beside the plain model, exact and rounded."""
    return partial(_reference.check, *([np.array([log_prob])] for log_prob in (value, -1.0, -1.25)))


CASES = {
    "a pair of another manifest": partial(
        asked, manifest(), images=[image("donor")], prompt=PROMPT, pairs=pairs("gone", "slake/test/0000")
    ),
    "a donor of another manifest": partial(
        asked, manifest(), images=[image("donor")], prompt=PROMPT, pairs=pairs("slake/test/0000", "gone")
    ),
    "one image to shuffle": partial(asked, manifest().head(1), images=[image("shuffled")], prompt=PROMPT),
    "a committed completion is missing": partial(forced, ANSWERS.tail(2), {"slake/test/0000": "image 2"}, "mine"),
    "no answer is wrong": partial(misleading, questions(row("a", "closed", "yes"), row("b", "closed", "Yes"))),
    "integers of a service": partial(
        requests_of, shard(choices=Choices(integers=[0, 100]), decoding=None), SERVICE, [QUESTION]
    ),
    **{name: partial(reply_of, said, n=n, log_probs=of) for name, (said, n, of) in REPLIES.items()},
    **{
        name: partial(reply_in, line, next(iter(requests_of(shard(), SERVICE, [QUESTION]))))
        for name, line in LINES.items()
    },
    "a replay of another completion": partial(agreement.check, REPLAYED, BOUNDS, where="shard"),
    "steps and passes": partial(settings(steps=5, passes=1).steps_over, 10),
    "neither steps nor passes": partial(settings(steps=None).steps_over, 10),
    "a step that is no whole number of passes": partial(_arguments._batches, settings(completions_per_pass=3)),
    # rounding .25 nats, and 3 * .25 + .0001 is the bound
    "a trainer of another model": trained(-1.76),
    "a trainer of no number": trained(np.nan),
    # 3 * .01 + .0001 is the bound
    "rollouts that differ by rounding": partial(_rollouts.check, 0.03, 10, 0.01, 7),
    "rollouts of another model": partial(_rollouts.check, 0.031, 10, 0.01, 7),
}


def wrote(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def tensors(folder: Path, index: dict[str, str] | None, **files: dict[str, torch.Tensor]) -> Path:
    """Write weights; the files of `index` are there, too."""
    folder.mkdir()
    for name, of in files.items():
        save_file(of, folder / f"{name}.safetensors", metadata={"format": "pt"})
    if index:
        (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return folder


def answers(folder: Path, *texts: str) -> Found:
    """Write a response with each text to the one question."""
    [request] = requests_of(shard(), SERVICE, [QUESTION])
    lines = [{"custom_id": request.custom_id, "response": {"body": body(choice(text))}} for text in texts]
    wrote(folder, {"a.jsonl": "\n".join(map(json.dumps, lines))})
    return Found(read_responses(folder))


def all_of(found: Found) -> None:
    list(found.replies(requests_of(shard(), SERVICE, [QUESTION])))
    found.refuse_missing("shard")


def test_the_messages(tmp_path):
    found = {name: golden.message_of(case) for name, case in CASES.items()}

    def add(name, ask):
        found[name] = golden.message_of(ask, tmp_path)

    for number, (name, files) in enumerate(CONFIGS.items()):
        folder = wrote(tmp_path / f"config {number}", files)
        add(name, partial(_config if name.startswith("an adapter") else read_config, folder))
    for number, (name, files) in enumerate(WEIGHTS.items()):
        add(name, partial(weight_files, wrote(tmp_path / f"weights {number}", files)))
    one, two = {"a": torch.ones(1)}, {"b": torch.ones(1)}
    quantized = {"a": torch.ones(1, dtype=torch.int8)}
    add("weights: quantized", partial(weight_files, tensors(tmp_path / "quantized", None, model=quantized)))
    index = {"a": "x.safetensors", "b": "y.safetensors"}
    add("weights: twice", partial(weight_files, tensors(tmp_path / "twice", index, model=one, x=one, y=two)))
    add("weights: elsewhere", partial(weight_files, tensors(tmp_path / "elsewhere", index, x=one | two, y=two)))
    add("two responses to one request", partial(all_of, answers(tmp_path / "two", "lung", "heart")))
    add("no response to a request", partial(all_of, answers(tmp_path / "none")))
    golden.check(Path(__file__).with_name("messages.txt"), found)
