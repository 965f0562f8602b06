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
                end = re.search(r"^\[\w+\] ended (by|with exit code) (\w+)\Z", text, re.MULTILINE)
                yield f"{path}: {_of_a_killed_job(*end.groups() if end else ('by', ''))}"


def _of_a_killed_job(how: str, what: str) -> str:
    """Return what to do about a job that ended `how` ("by" a signal, "with exit code") and without a message."""
    again = "Run the same command again: artifacts that it finished are kept."
    if how != "by":
        return (
            f"this job ended with exit code {what} and without a message: something that it ran, such as a plugin or a"
            f" package, ended the process. Look into the log. {again}"
        )
    if what not in ("", "SIGKILL"):
        return f"this job was ended by {what}. {again}"
    return (
        f"this job was killed, perhaps for lack of memory{'' if what else ', or ended without a message'}. {again} To"
        " run fewer models at once, raise machine.model_job_memory_gb; on a cluster, raise the stage's mem_mb or"
        " runtime in the profile."
    )
