"""Take a measure of each completion of a shard."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dualread import plugins
from dualread.declared.base import ConfiguredPlugin
from dualread.declared.plugin_settings import NoSettings
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.backbones.opened import Opened
from dualread.models.finished import each_batch
from dualread.models.generation.base import Request
from dualread.models.prefixes import pass_tokens


def measured(
    actor: Opened,
    requests: Sequence[Request],
    completions: Sequence[Sequence[int]],
    measure: ConfiguredPlugin,
    *,
    batch_size: int,
) -> dict[str, np.ndarray]:
    """Return what a measure finds of one completion of each request, float32 [n, d] by name.

    Args:
        actor: The opened checkpoint.
        requests: n requests without a prefix.
        completions: The generated ids of each request, at least one.
        measure: The plugin and its settings.
        batch_size: Completions after which a killed job goes on.
    """
    import torch

    plugin = plugins.load_module(measure.module)
    settings = getattr(plugin, "Settings", NoSettings).of(measure.settings, f"{measure.module}: settings")

    def of_batch(batch: Sequence[int]) -> list[dict[str, np.ndarray]]:
        encoded = {
            i: actor.encoder.prompt(requests[i].text, image=requests[i].image, row=requests[i].row) for i in batch
        }
        made: dict[int, dict[str, np.ndarray]] = {}
        with torch.inference_mode():
            for rows in _passes(actor, encoded, completions):
                made |= zip(
                    rows,
                    plugin.measure(actor, [encoded[i] for i in rows], [completions[i] for i in rows], settings),
                    strict=True,
                )
        return [made[i] for i in batch]

    # Prompts of one length are read together, and those are mostly of texts of one length.
    order = sorted(range(len(requests)), key=lambda i: (len(requests[i].text), requests[i].image_name, i))
    rows = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    found: dict[int, dict[str, np.ndarray]] = {}
    for batch, of in each_batch(rows, of_batch, label="measuring (batches)"):
        found |= zip(batch, of, strict=True)
    names = found[0] if found else ()
    return {name: np.stack([found[i][name] for i in range(len(found))]).astype(np.float32) for name in names}


def _passes(
    actor: Opened, encoded: Mapping[int, EncodedPrompt], completions: Sequence[Sequence[int]]
) -> Iterator[list[int]]:
    """Yield the rows of each pass: prompts of one length, so that nothing stands before a prompt."""
    rows: list[int] = []
    most = pass_tokens(actor.model)
    lengths = {i: (len(prompt.token_ids), len(completions[i])) for i, prompt in encoded.items()}
    for i in sorted(encoded, key=lambda i: (*lengths[i], i)):
        is_full = (len(rows) + 1) * sum(lengths[i]) > most or not actor.encoder.facts.images_once
        if rows and (is_full or lengths[i][0] != lengths[rows[0]][0]):
            yield rows
            rows = []
        rows.append(i)
    if rows:
        yield rows
