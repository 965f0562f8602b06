"""The files of requests, and what there is to say about the responses."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dualread.commands.ask.study import Asking, RequestBatch
from dualread.models.service.bodies import ImageUrl, line_of
from dualread.models.service.responses import read_responses

# The limits of OpenAI's Batch API, the narrowest that we know: requests, and bytes with room to spare.
_MOST_LINES, _MOST_BYTES = 50_000, 190_000_000
_SHOWN = 3
_README = """Put the output files of the service here: JSON lines (*.jsonl) in the output format of the Batch API.
`dualread ask --run` appends its responses to sent.jsonl. See docs/given-answers.md.
"""


def written(asking: Asking, url_of: ImageUrl) -> Iterator[str]:
    """Write what is still to be asked into each folder of answers, in place of what was written before.

    Yields:
        Lines about requests and responses, for people.
    """
    for actor, reasons in asking.config.left_out.items():
        for method, reason in reasons.items():
            yield f"{actor}: the method {method} is left out: {reason}"
    for folder in asking.folders:
        batches = list(asking.batches(folder))
        for batch in batches:
            yield _about(batch)
        yield from _problems(folder)
        n_missing = sum(batch.found.n_missing for batch in batches)
        waiting = sum(batch.waiting for batch in batches)
        (folder / "responses").mkdir(parents=True, exist_ok=True)
        (folder / "responses/README.txt").write_text(_README, encoding="utf-8")
        for file, n in write_requests(folder, batches, url_of):
            yield f"wrote {file}: {n} requests"
        if waiting:
            yield f"up to {waiting} further requests are about answers that are not there yet: run this again then"
        elif not n_missing:
            yield f"{folder}: everything is answered"


def _about(batch: RequestBatch) -> str:
    n = batch.found.n_requests
    name = "/".join((batch.backbone, batch.actor, *batch.shard))
    why = "; ".join(batch.found.why[:_SHOWN]) + ("; ..." if len(batch.found.why) > _SHOWN else "")
    said = f"{name}: {n - batch.found.n_missing} of {n} requests are answered"
    return said + (f" ({why})" if why else "")


def _problems(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the responses, all requests of which were looked up."""
    responses = read_responses(folder / "responses")
    n_strange, where = responses.strange()
    if n_strange:
        yield (
            f"{responses.folder}: {n_strange} custom_ids are of no request of this study, such as that of {where}: they"
            " answer something else, or an earlier form of a question. They are not read."
        )
    if responses.n_broken:
        yield f"{responses.folder}: {responses.n_broken} lines are no response, such as {responses.first_broken}."


def write_requests(folder: Path, batches: Sequence[Any], url_of: ImageUrl) -> Iterator[tuple[Path, int]]:
    """Write files that a batch service takes, in place of earlier ones, and yield each with its number of requests."""
    for old in folder.glob("requests-*.jsonl"):
        old.unlink()
    lines, number = _lines(batches, url_of), 0
    line = next(lines, None)
    while line is not None:
        number += 1
        path, n, size = folder / f"requests-{number:03d}.jsonl", 0, 0
        with path.open("wb") as file:
            while line is not None and (not n or (n < _MOST_LINES and size + len(line) <= _MOST_BYTES)):
                file.write(line)
                n, size = n + 1, size + len(line)
                line = next(lines, None)
        yield path, n


def _lines(batches: Sequence[Any], url_of: ImageUrl) -> Iterator[bytes]:
    for batch in batches:
        for request in batch.open():
            yield json.dumps(line_of(request, batch.body(request, url_of))).encode() + b"\n"
