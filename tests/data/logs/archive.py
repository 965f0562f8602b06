"""Write logs in the forms of Inspect, for what a real one does not show."""

import json
import zipfile
from pathlib import Path
from typing import Any

HEADER = {"version": 2, "status": "success", "eval": {"task": "t", "dataset": {"sample_ids": ["q1", "q2"]}}}


def sample(name: str, completion: str, *, epoch: int = 1, target: Any = "yes", **other: Any) -> dict[str, Any]:
    """A finished sample with the fields that today's Inspect writes."""
    message = {"role": "assistant", "content": completion}
    return {
        "id": name,
        "epoch": epoch,
        "input": "Is there a lesion?",
        "target": target,
        "output": {"model": "m", "choices": [{"message": message}], "completion": completion},
        "scores": {},
        "metadata": {},
        "attachments": {},
        **other,
    }


def archive(path: Path, samples: list[dict[str, Any]], header: dict[str, Any] | None = HEADER) -> Path:
    """A .eval as Inspect wrote it before it used Zstandard."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("_journal/start.json", json.dumps({"version": 2, "eval": HEADER["eval"]}))
        for one in samples:
            file.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        if header is not None:
            file.writestr("header.json", json.dumps(header))
    return path
