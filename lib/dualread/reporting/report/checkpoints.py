"""What experiments say about the checkpoints of a study (`models/probe.py`): how rows are read, and how exactly."""

import json
from collections.abc import Mapping

from dualread.reporting.report._grid import Grid, count
from dualread.reporting.report.provenance import Provenance
from dualread.store.manifest import Manifest


def checkpoints(
    artifacts: Mapping[str, Manifest | None], labels: Mapping[str, Mapping[str, str]], provenance: Provenance
) -> Grid:
    """Return one row per checkpoint that was probed; actors that are trained from it have its facts."""
    rows = []
    for key, manifest in artifacts.items():
        if manifest is None or manifest.action.stage != "probe_checkpoint":
            continue
        of_file = json.loads(provenance.file(key, "facts.json"))
        facts, found = of_file["facts"], of_file["found"]
        name = manifest.action.spec["backbone"]
        rows.append(
            (
                labels["backbones"].get(name, name),
                facts["shared"],
                "once" if facts["images_once"] else "for every prompt",
                "in one pass" if facts["tree"] else "one by one",
                f"{count(found['image_tokens_that_images_change'])} of {count(found['image_tokens'])}",
                str(facts["completion_type"]) if found["token_types"] else "—",
                f"{found['layers']} of {count(found['width'])}",
                provenance.record(key).get("summary", "—"),
            )
        )
    return Grid(
        caption="What experiments say about the checkpoints: the fastest ways to read rows that agree with transformers"
        " alone on single rows",
        columns=(
            "Backbone",
            "Rows share",
            "An image is encoded",
            "Continuations are read",
            "Image tokens that images change",
            "Token type of a completion",
            "Layers, width",
            "What was measured",
        ),
        rows=sorted(rows),
    )
