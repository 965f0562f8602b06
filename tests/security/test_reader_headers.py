"""What a reader's file says about its actor is checked as a study's values are, before anything is opened (D5, D6)."""

import json
from functools import partial

import pytest

from dualread.apps.score import ScorerChoice
from dualread.apps.score.answering import OpenActor
from dualread.apps.score.loading import ChosenReaders
from dualread.errors import DualReadError
from tests.apps.score import small
from tests.security.conftest import edited

SHA = "0" * 64
VIEW = {"name": "v", "image": "original", "prompt": {"name": "shared", "sha256": SHA}, "forced": False}
# (place in the header's provenance, value)
WRONG = [
    *(("scoring.model.attention", value) for value in ("someone/kernel", "flash_attention_9", "", 1, None, ["sdpa"])),
    *(("scoring.model.dtype", value) for value in ("float16", "int8", "torch.float32", None)),
    *(("scoring.model.quantization", {"module": value, "bits": 4}) for value in ("apps.store.gc", "os", "../x", None)),
    *(("scoring.model.quantization", {"module": "models.quantized", "bits": value}) for value in (2, "4", 10**9)),
    *(("scoring.model.max_prompt_tokens", value) for value in (10**9, 0, -1, "200", 200.5, True)),
    *((f"scoring.model.{name}_pixels", value) for name in ("min", "max") for value in (10**9, 0, -5, 1e300, "1024")),
    ("scoring.model.chat_template", {"x": [1]}),
    ("scoring.model.chat_template", {"x": "y" * 10**6}),
    ("scoring.model.forbidden_tokens", ["x"] * 10**5),
    ("scoring.model.trust_remote_code", True),
    ("scoring.model", None),
    ("scoring.model", []),
    *(("scoring.decoding.n_samples", value) for value in (10**9, 0, "1")),
    *(("scoring.decoding.max_completion_tokens", value) for value in (10**9, 0, 1.5)),
    *(("scoring.decoding.temperature", value) for value in (-1, 1e300, "0", None)),
    *(("scoring.decoding.top_p", value) for value in (0, 2, None)),
    ("scoring.decoding", None),
    *(("scoring.contract", value) for value in ("other", None, 1)),
    *(("scoring.facts.shared", value) for value in ("everything", None)),
    ("scoring.facts.completion_type", 7),
    ("scoring.facts", {}),
    *(("scoring.prompt.name", value) for value in ("../../secret", "x\x1b[2J", "", None)),
    ("scoring.prompt.sha256", "1"),
    ("scoring.checkpoint", {"config.json": "x"}),
    ("scoring.views", [{**VIEW, "choices": {"integers": [0, 10**9]}}]),
    ("scoring.views", [{**VIEW, "choices": {"words": ["x"] * 10**4}}]),
    ("scoring.views", [{**VIEW, "decoding": {**small.DECODING, "n_samples": 10**9}}]),
    ("scoring.views", [{**VIEW, "image": "file:///etc/passwd"}]),
    ("scoring.views", [VIEW] * 1000),
    ("scoring.views", {"a": 1}),
    ("scoring", None),
    ("scoring", []),
    *(("replay.kappa", value) for value in ("0.1", None, -1, 10**9, True, [])),
    ("replay.example", None),
    ("replay", 7),
    ("features", 7),
    ("features", None),
]


def opened(reader, actor):
    choice = ScorerChoice(reader=reader, checkpoint=actor, allow_other=True)
    return ChosenReaders.load(choice).with_actor(partial(OpenActor, batch_size=1))


@pytest.mark.parametrize(("place", "value"), WRONG, ids=lambda value: f"{value!r:.40}")
def test_a_wrong_value_is_refused_in_a_sentence_before_anything_is_opened(readers, tmp_path, monkeypatch, place, value):
    if place.startswith("scoring"):
        monkeypatch.setattr("dualread.apps.score.answering.open_checkpoint", None)
    with pytest.raises(DualReadError) as refused:
        opened(edited(readers.reader("psr"), tmp_path, f"provenance.{place}", value), readers.actor)
    assert len(str(refused.value)) < 3000
    assert "Traceback" not in str(refused.value)


def test_a_header_that_nests_too_deeply_is_refused(readers, tmp_path):
    file = readers.reader("psr") / "reader.safetensors"
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + size])
    head["__metadata__"]["dualread"] = "[" * 100_000
    text = json.dumps(head).encode()
    (tmp_path / "reader.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])
    with pytest.raises(DualReadError, match="cannot be read"):
        opened(tmp_path / "reader.safetensors", readers.actor)


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 8, (2**40).to_bytes(8, "little") + b"{}", b"\x02" + bytes(7) + b"{}"]
)
def test_sizes_of_a_file_are_those_of_its_bytes(tmp_path, content):
    (tmp_path / "reader.safetensors").write_bytes(content)
    with pytest.raises(DualReadError):
        opened(tmp_path / "reader.safetensors", tmp_path)
