"""What the logs of a run's failed jobs say."""

import re
from collections.abc import Iterator
from pathlib import Path


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
