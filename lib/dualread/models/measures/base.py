"""Take a measure of each completion of a shard."""

from collections.abc import Sequence

import numpy as np

from dualread import plugins
from dualread.declared.base import ConfiguredPlugin
from dualread.declared.plugin_settings import NoSettings
from dualread.models.backbones.opened import Opened
from dualread.models.finished import each_batch
from dualread.models.generation.base import Request
from dualread.models.replay.forward import batches


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
        asked = [actor.encoder.prompt(requests[i].text, image=requests[i].image, row=requests[i].row) for i in batch]
        with torch.inference_mode():
            pairs = zip(asked, (completions[i] for i in batch), strict=True)
            return [plugin.measure(actor, prompt, completion, settings) for prompt, completion in pairs]

    rows = list(batches([request.image_name for request in requests], [len(ids) for ids in completions], batch_size))
    found: dict[int, dict[str, np.ndarray]] = {}
    for batch, of in each_batch(rows, of_batch, label="measuring (batches)"):
        found |= zip(batch, of, strict=True)
    names = found[0] if found else ()
    return {name: np.stack([found[i][name] for i in range(len(found))]).astype(np.float32) for name in names}
