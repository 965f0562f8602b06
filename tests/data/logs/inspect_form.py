"""Write logs in the forms of Inspect, for what a real one does not show."""

import json
import zipfile
from pathlib import Path
from typing import Any

EVAL = {
    **{"task": "t", "task_id": "t", "task_version": 0, "run_id": "r", "eval_id": "e", "created": "2026-11-24T00:00:00"},
    **{"model": "m", "dataset": {"sample_ids": ["q1", "q2"]}, "config": {}},
}
HEADER = {"version": 2, "status": "success", "eval": EVAL, "plan": {}, "results": None, "stats": {}}


def sample(name: str, completion: str, *, epoch: int = 1, target: Any = "yes", **other: Any) -> dict[str, Any]:
    """A finished sample."""
    message = {"role": "assistant", "content": completion}
    scores = other.pop("scores", {})
    return {
        **{"id": name, "epoch": epoch, "input": "Is there a lesion?", "target": target},
        "output": {"model": "m", "choices": [{"message": message}], "completion": completion},
        **{"scores": scores, "metadata": {}, "attachments": {}, "messages": []},
        **other,
    }


def archive(path: Path, samples: list[dict[str, Any]]) -> Path:
    """A .eval as Inspect wrote it before it used Zstandard."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("_journal/start.json", json.dumps({"version": 2, "eval": EVAL, "plan": {}}))
        for one in samples:
            file.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        file.writestr("header.json", json.dumps(HEADER))
    return path
