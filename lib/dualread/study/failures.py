"""Failed jobs of a study: what their logs say, and when they failed.

Snakemake 9.27 records a failed job as if it had finished: while older results lie below it, the next call would find
nothing to do and leave them as they are. So the outputs that a failed run did not make are written down with its time,
which is a part of the jobs' params from then on.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dualread.store.files import read_json, replace_text

FAILURES_NAME = "failures.json"  # a file of the study's results


def read_failures(file: Path) -> dict[str, float]:
    """Return when the run failed that did not make an output, by output; empty where no run has failed."""
    try:
        return dict(read_json(file))
    except (OSError, ValueError, TypeError):  # there is no file, or a kill left half of it
        return {}


def write_failures(file: Path, known: Mapping[str, float], outputs: Iterable[str], started: float) -> None:
    """Add the outputs that the run which began at `started` (seconds since the epoch) did not make."""
    replace_text(file, json.dumps({**known, **dict.fromkeys(outputs, started)}, indent=1))


def reasons(logs: Path, since: float) -> Iterator[str]:
    """Yield what the logs of failed jobs say, one text per job, of logs that were written `since` then."""
    for path in sorted(logs.rglob("*.log")):
        if path.stat().st_mtime >= since:
            text = path.read_text(errors="replace").rstrip()
            if reason := re.search(r"^\[\w+\] error: ", text, re.MULTILINE):
                yield f"{text[reason.start() :]}\n  (log: {path})"
            elif not re.search(r"^\[\w+\] (done|interrupted.*)\Z", text, re.MULTILINE):
                yield (
                    f"{path}: this job was killed, perhaps for lack of memory. Run the same command again: artifacts"
                    " that it finished are kept. To run fewer models at once, raise machine.model_job_memory_gb; on a"
                    " cluster, raise the stage's mem_mb or runtime in the profile."
                )
