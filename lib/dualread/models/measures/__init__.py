"""Measures: one file per further pass over a completion, for methods that need more of the model than states.

Entry points of a plugin:
    measure(opened, prompts, completions, settings) -> numbers: What the pass measures of each completion, as float
        arrays [d] by name, of the same names and shapes for all of them. `opened` is the actor
        (`checkpoint.Opened`), `prompts` what it was asked, all with equally many tokens, and `completions` the
        ids that it generated. A view that names the measure gives these numbers to readers, as `view.features(name)`.
    PASSES: How many passes over prompt and completion it takes, which costs count.
    Settings: What the config may set.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from dualread import plugins
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.prefixes import pass_tokens
from dualread.schema.base import ConfiguredPlugin, NoSettings


def measure_batch(
    opened: Opened, prompts: Sequence[EncodedPrompt], completions: Sequence[Sequence[int]], measure: ConfiguredPlugin
) -> list[dict[str, np.ndarray]]:
    """Return what a measure finds of one completion of each prompt, by name; see `actor.take_measure`."""
    import torch

    plugin = plugins.load_module(measure.module)
    settings = getattr(plugin, "Settings", NoSettings).from_spec(measure.settings, f"{measure.module}: settings")
    made: dict[int, dict[str, np.ndarray]] = {}
    with torch.inference_mode():
        for rows in _passes(opened, prompts, completions):
            measured = plugin.measure(opened, [prompts[i] for i in rows], [completions[i] for i in rows], settings)
            made |= zip(rows, measured, strict=True)
    return [made[i] for i in range(len(prompts))]


def _passes(
    opened: Opened, prompts: Sequence[EncodedPrompt], completions: Sequence[Sequence[int]]
) -> Iterator[list[int]]:
    """Yield the rows of each pass: prompts of one length, so that nothing stands before a prompt."""
    rows: list[int] = []
    most = pass_tokens(opened.model)
    lengths = [(len(prompt.token_ids), len(ids)) for prompt, ids in zip(prompts, completions, strict=True)]
    for i in sorted(range(len(prompts)), key=lambda i: (*lengths[i], i)):
        is_full = (len(rows) + 1) * sum(lengths[i]) > most or not opened.encoder.facts.images_once
        if rows and (is_full or lengths[i][0] != lengths[rows[0]][0]):
            yield rows
            rows = []
        rows.append(i)
    if rows:
        yield rows
