"""A checkpoint that this library writes can be opened by transformers alone, and then answers as it does here."""

import json
import os
import subprocess
import sys

import pytest
import torch
import transformers

from dualread.models import prompts
from dualread.models.actor import EncodedRequest, SeededDecoding
from dualread.models.backbones.checkpoint import copy_processor
from dualread.models.generation._transformers_stream import complete
from tests.architectures import both
from tests.tiny import image

pytestmark = pytest.mark.rest

QUESTION = prompts.render("shared", question="Is there a lesion?")
# Qwen's processor needs torchvision for its video processor, as that of every checkpoint of Qwen3-VL does. Without it,
# the tokens of the prompt are made here from the files of the tokenizer and the image processor.
ELSEWHERE = """
import json, sys
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer

folder, picture, text, n_tokens, forbidden = sys.argv[1:]
content = [{"type": "image", "image": Image.open(picture)}, {"type": "text", "text": text}]
asked = [{"role": "user", "content": content}]
try:
    processor = AutoProcessor.from_pretrained(folder)
except ImportError as error:
    assert "Torchvision" in str(error), error
    tokenizer, images = AutoTokenizer.from_pretrained(folder), AutoImageProcessor.from_pretrained(folder, backend="pil")
    pixels = images(images=[Image.open(picture)], return_tensors="pt")
    rendered = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    n_image_tokens = pixels["image_grid_thw"][0].prod() // images.merge_size**2
    rendered = rendered.replace("<|image_pad|>", "<|image_pad|>" * n_image_tokens)
    inputs = {**tokenizer(rendered, return_tensors="pt"), **pixels}
    image_token = tokenizer.convert_tokens_to_ids("<|image_pad|>")
    inputs["mm_token_type_ids"] = (inputs["input_ids"] == image_token).long()
else:
    processor.tokenizer  # no bare tokenizer
    inputs = processor.apply_chat_template(
        asked, tokenize=True, return_dict=True, add_generation_prompt=True, return_tensors="pt"
    )
model = AutoModelForImageTextToText.from_pretrained(folder)
made = model.generate(**inputs, do_sample=False, max_new_tokens=int(n_tokens), suppress_tokens=json.loads(forbidden))
assert "dualread" not in sys.modules
print(json.dumps([inputs["input_ids"][0].tolist(), made[0, inputs["input_ids"].shape[1] :].tolist()]))
"""


@both
def test_transformers_alone_gives_the_same_tokens(tiny, tmp_path):
    actor = tmp_path / "actor"
    opened = tiny.open()
    opened.model.save_pretrained(actor)
    copy_processor(tiny.checkpoint, actor)
    image(0).save(tmp_path / "x.png")
    prompt = opened.encoder.prompt(QUESTION, images=[image(0)], row="1")
    decoding = SeededDecoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=8, seed=0)
    with torch.no_grad():
        [[ours]] = complete(opened, [EncodedRequest(name="1", prompt=prompt, decoding=decoding)])
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    asked = [actor, tmp_path / "x.png", QUESTION, "8", json.dumps(opened.encoder.forbidden)]
    command = [sys.executable, "-I", "-c", ELSEWHERE, *asked]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [list(prompt.token_ids), list(ours.token_ids)]


@pytest.mark.parametrize("file", ["processor_config.json", "tokenizer_config.json"])
def test_saved_processors_name_a_class_of_transformers(tiny, file):
    name = json.loads((tiny.checkpoint / file).read_text())["processor_class"]
    assert issubclass(getattr(transformers, name), transformers.ProcessorMixin)
