"""Stage describe_service: an actor whose answers are given, in the place of a checkpoint and of what is probed of it.

output:  service.json, the model's name; facts.json without a fact, because nothing of a service can be probed
"""

import json
from collections.abc import Mapping
from pathlib import Path

from dualread.schema.answers import DescribeServiceSpec


def compute(spec: DescribeServiceSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write both files; `left_out` is in the artifact's manifest, where the report finds it."""
    (out / "service.json").write_text(json.dumps({"model": spec.model}) + "\n", encoding="utf-8")
    (out / "facts.json").write_text(json.dumps({"facts": {}}) + "\n", encoding="utf-8")
    return f"{spec.model}; {len(spec.left_out)} methods are left out"
