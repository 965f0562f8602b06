"""What `full_size.py` does with one model: each part is a stage of the workflow, or a check of one, on given inputs."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import _real
import numpy as np
from _rehearsal import Rehearsal
from _training import SEEN, train, visual_dependence
from _wrong_models import wrong_models
from PIL import Image

from dualread.artifacts.tables import read_parts, read_table, write_rows
from dualread.models import prompts
from dualread.models.backbones._checkpoint_files import read_config
from dualread.models.backbones.encode import Encoder
from dualread.models.backbones.processor import load_processor
from dualread.schema.answers import GenerateSpec, ReplaySpec
from dualread.schema.columns import CHOICES, GENERATIONS
from dualread.schema.replay import PassReading
from dualread.stages import generate, replay
from dualread.stages._asked import frozen, read_asked

# As a trained actor answers. Untrained models never write such a text, and self-checks are about it.
ANSWER = "<reasoning>axial ct of the chest</reasoning>\n<answer>no</answer>\n<confidence>85</confidence>"
KEPT = "greedy, states kept"
GREEDY = ("greedy", KEPT)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One row of the table.

    Attributes:
        name: What is done.
        run: Does it; returns what was found, or raises.
        stage: The stage, whose memory the rehearsal knows (`Rehearsal.least`); None for others.
        least: Bytes that it needs at least, where it is no stage.
    """

    name: str
    run: Callable[[], str]
    stage: str | None = None
    least: float = 0.0


def parts_of(kind: str, rehearsal: Rehearsal) -> Iterator[Part]:
    """Yield what one process does.

    Models are opened with the facts of the backbone. The first process that opens one finds them; without them, it
    does nothing else. `kind` is "encode", "probe" (the facts alone), "generate", "replay", "wrong models", or a
    trained actor.
    """
    facts = rehearsal.facts / "facts.json"
    if kind != "encode" and not facts.is_file():
        yield Part(name="probe", run=rehearsal.probe, least=rehearsal.float32_of("probe"))
        if not facts.is_file():
            return
    if kind == "probe":
        return
    if kind == "encode":
        yield Part(name="tokens", run=lambda: tokens(rehearsal))
        yield Part(name="encode", run=lambda: encode(rehearsal))
    elif kind == "generate":
        # What vLLM takes is a setting.
        stage, more = (None, (KEPT,)) if rehearsal.on_vllm else ("generate", ())
        for view in ("greedy", "samples", "stated_integer", "p_true", *more):
            yield Part(name=view, run=lambda view=view: answer(rehearsal, view), stage=stage)
    elif kind == "replay":
        for view in ("greedy", "samples", *((KEPT,) if rehearsal.on_vllm else ())):
            yield Part(name=f"replay of {view}", run=lambda view=view: read_again(rehearsal, view), stage="replay")
    elif kind == "wrong models":
        for name, run in wrong_models(rehearsal):
            yield Part(name=f"replayed by {name}", run=run, least=rehearsal.float32_of(kind))
    else:
        yield Part(name=f"train {kind}", run=lambda: train(rehearsal, kind), stage=f"train_actor ({kind})")
        if kind == "vl_calibration":
            least = rehearsal.float32_of(kind)
            yield Part(name="visual dependence", run=lambda: visual_dependence(rehearsal), least=least)


def tokens(rehearsal: Rehearsal) -> str:
    """Check that texts are split as the tokenizer's own file says, and that words and integers can be scored."""
    from tokenizers import Tokenizer

    from dualread.models.generation.choices import choices_of

    exact = Tokenizer.from_file(str(_real.tokenizer_file(rehearsal.family)))
    actor = rehearsal.answering
    processor = load_processor(actor / "checkpoint", rehearsal.settings)
    texts = [
        *prompts.fixed_pieces(prompts.names()),
        ANSWER,
        SEEN,
        "Überlauf ≥ 3,5 mm²?\n\n\tТест 肺 🫁",
        *map(str, range(101)),
    ]
    for text in texts:
        ids = processor.tokenizer(text, add_special_tokens=False)["input_ids"]
        assert ids == exact.encode(text, add_special_tokens=False).ids, f"{text!r}: {ids}"
        assert processor.tokenizer.decode(ids, skip_special_tokens=True) == text, f"{text!r} is decoded differently"
    committed = processor.tokenizer(ANSWER, add_special_tokens=False)["input_ids"]
    stop = {processor.tokenizer.eos_token_id}
    stated, judged = (rehearsal.asked(view).choices for view in ("stated_integer", "p_true"))
    assert stated is not None, "paper.yaml has no choices in stated_integer"
    assert judged is not None, "paper.yaml has no choices in p_true"
    integers = choices_of(stated, processor.tokenizer, committed, stop)
    written = {processor.tokenizer.decode([*integers.prefix, *ids]) for [ids] in integers.variants.values()}
    assert len(written) == 101, f"{len(written)} different texts of 101 integers"
    words = choices_of(judged, processor.tokenizer, committed, stop)
    spellings = {word: len(ids) for word, ids in words.variants.items()}
    return f"{len(texts)} texts; 101 integers, all different; spellings that are one token: {spellings}"


def encode(rehearsal: Rehearsal) -> str:
    """Encode all prompts with images of many sizes; count the image tokens."""
    actor = rehearsal.answering
    settings = {**rehearsal.settings, "max_prompt_tokens": 4096}
    processor = load_processor(actor / "checkpoint", settings)
    encoder = Encoder(processor, read_config(actor / "checkpoint"), settings)
    rng, lengths = np.random.default_rng(0), []
    per_token = rehearsal.config.as_mapping()["backbones"][rehearsal.backbone]["size"]["pixels_per_token"]
    for width, height in ((64, 64), (224, 224), (512, 512), (1024, 768), (573, 1001), (3000, 2000)):
        image = Image.fromarray(rng.integers(0, 255, (height, width, 3)).astype(np.uint8))
        for name, text in every_prompt():
            prompt = encoder.prompt(text, images=[image], row=f"{name} {width}x{height}")
            n = prompt.token_ids.count(encoder.image_token_id)
            low, high = (settings[limit] // per_token for limit in ("min_pixels", "max_pixels"))
            assert low <= n <= high, f"{prompt.row}: {n} image tokens, expected {low} to {high}"
            assert text in encoder.decode(prompt.token_ids), f"{prompt.row}: the text is not in the prompt"
            lengths.append(len(prompt.token_ids))
    return f"{len(lengths)} prompts of {min(lengths)} to {max(lengths)} tokens"


def every_prompt() -> Iterator[tuple[str, str]]:
    """Yield the name and a text of every prompt."""
    given = {"options": ("left lung", "right lung", "both", "none"), "answer": "left lung", "hint": "right lung"}
    for name in prompts.names():
        yield name, prompts.render(name, question="Which lung is abnormal?", **given)


def answer(rehearsal: Rehearsal, view: str) -> str:
    """Run the stage `generate`; say how many tokens a second were made."""
    out = rehearsal.answers(view)
    out.mkdir(parents=True, exist_ok=True)
    asked = rehearsal.asked() if view in GREEDY else rehearsal.asked(view)
    actor = rehearsal.answering
    inputs = {"actor": actor, "facts": rehearsal.facts, "manifest": rehearsal.manifest()}
    if asked.choices is not None:
        inputs["generations"] = _committed(rehearsal)
    spec = GenerateSpec(**rehearsal.fields(), shard=asked, engine=rehearsal.engine, states=_kept(rehearsal, view))
    of_model, of_engine = frozen(spec.model), frozen(spec.engine.settings)
    facts = inputs["facts"] / "facts.json"
    generate.loaded_engine(
        actor, spec.engine.module, of_model, of_engine, facts
    )  # loading is not part of the throughput
    start = time.perf_counter()
    said = generate.compute(spec, inputs, out)
    seconds = time.perf_counter() - start
    if asked.choices is not None:
        found = read_table(out / "choices.parquet", CHOICES)["log_prob"].to_numpy()
        assert len(found) > 0, "no choice was scored"
        assert np.isfinite(found).all(), "a log-probability is not finite"
        assert found.max() <= 0, f"a log-probability of {found.max()} is above 0"
        return f"{said}; {len(found) / seconds:.1f} a second"
    made = read_parts(out, GENERATIONS)
    n_tokens = sum(map(len, made["token_ids"]))
    return f"{said}; {n_tokens / seconds:.1f} tokens a second"


def _kept(rehearsal: Rehearsal, view: str) -> PassReading | None:
    """Return what is kept of the states while answers are made, as `replay: {from: ...}` has it."""
    if view != KEPT:
        return None
    return PassReading(kappa=rehearsal.config.replay.kappa, middle=False, entropies=False)


def _committed(rehearsal: Rehearsal) -> Path:
    """Return answers with the text `ANSWER`, which the views are about."""
    out = rehearsal.answers("committed")
    out.mkdir(parents=True, exist_ok=True)
    processor = load_processor(rehearsal.answering / "checkpoint", rehearsal.settings)
    ids = [*processor.tokenizer(ANSWER, add_special_tokens=False)["input_ids"], processor.tokenizer.eos_token_id]
    rows = [
        {
            "sample_id": question.sample_id, "condition": "original", "sample_index": 0, "image_id": question.image_id,
            "prompt_sha256": "", "n_prompt_tokens": 0, "token_ids": ids, "token_log_probs": [0.0] * len(ids),
            "text": ANSWER, "finish_reason": "stop",
        }
        for question in read_asked(rehearsal.asked(), {"manifest": rehearsal.manifest()})
    ]  # fmt: skip
    write_rows(out, rows, GENERATIONS)
    return out


def read_again(rehearsal: Rehearsal, view: str) -> str:
    """Run the stage `replay`, which refuses answers that it does not reproduce."""
    out = rehearsal.answers(f"features-{view}")
    out.mkdir(parents=True, exist_ok=True)
    asked = rehearsal.asked() if view in GREEDY else rehearsal.asked(view)
    actor = rehearsal.answering
    inputs = {"actor": actor, "facts": rehearsal.facts, "manifest": rehearsal.manifest()}
    inputs["generations"] = rehearsal.answers(view)
    states = _kept(rehearsal, view)
    spec = ReplaySpec(**rehearsal.fields(), shard=asked, replay=rehearsal.config.replay, states=states)
    return replay.compute(spec, inputs, out)
