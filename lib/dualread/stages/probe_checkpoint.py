"""Stage probe_checkpoint: what experiments say about a checkpoint -> facts.json.

It is opened in float32, whatever the study computes in: in bfloat16, or with quantized
weights, rounding would hide what is wrong. Actors that are
trained from a checkpoint have its facts: their weights differ, and their architecture and processor do not. What was
measured depends on hardware a little, so it is in the summary (RECORD.json), and facts.json has none of it.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from dualread import plugins
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.probe import Probed, probe
from dualread.progress import say
from dualread.schema.backbones import ProbeCheckpointSpec


def compute(spec: ProbeCheckpointSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Probe the input `actor`."""
    if spec.rollouts is not None:
        plugins.load_module(spec.rollouts.module).prepare()
    # Flash attention cannot compute in float32.
    attention = {"flash_attention_2": "sdpa"}.get(spec.model["attention"], spec.model["attention"])
    settings = {**spec.model, "dtype": "float32", "attention": attention}
    probed = probe(open_checkpoint(inputs["actor"] / "checkpoint", settings), spec.backbone)
    facts = {"facts": probed.facts.model_dump(), "found": probed.found}
    (out / "facts.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    return _sentence(probed)


def _sentence(probed: Probed) -> str:
    facts, noted = probed.facts, probed.found
    gaps = probed.differences.items()
    ways = ", ".join(f"{way} {gap if isinstance(gap, str) else f'{gap:.1e}'}" for way, gap in gaps)
    each = " and ".join(f"{gap:.1e}" for gap in probed.by_each_image)
    several = f"another one of two images changes answers by {each}" if each else "a prompt takes one image"
    if any(gap <= probed.allowed for gap in probed.by_each_image):
        say(f"warning: {several}: where questions show several, its answers do not depend on each of them")
    return (
        f"rows share {facts.shared}, an image is encoded {'once' if facts.images_once else 'for every prompt'},"
        f" continuations are read {'in one pass' if facts.tree else 'one by one'}, completions have token type"
        f" {facts.completion_type}; images change {noted['image_tokens_that_images_change']} of {noted['image_tokens']}"
        f" {noted['image_token']}; {noted['layers']} layers of width {noted['width']}; what is used differs"
        f" from transformers alone by at most {probed.largest:.1e} nats (allowed {probed.allowed:.1e}, two"
        f" implementations of attention {probed.rounding:.1e}, another image {probed.by_image:.1e}); {several};"
        f" all that was tried: {ways}"
    )
