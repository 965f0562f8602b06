"""The files of requests, and what there is to say about the responses."""

import json
from collections.abc import Iterator
from pathlib import Path

from dualread.commands.ask.study import Asking, Batch
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
        yield from _problems(folder, batches)
        n_missing = sum(len(batch.found.missing) for batch in batches)
        waiting = sum(batch.waiting for batch in batches)
        (folder / "responses").mkdir(parents=True, exist_ok=True)
        (folder / "responses/README.txt").write_text(_README, encoding="utf-8")
        for old in folder.glob("requests-*.jsonl"):
            old.unlink()
        for file, n in _parts(folder, batches, url_of):
            yield f"wrote {file}: {n} requests"
        if waiting:
            yield f"up to {waiting} further requests are about answers that are not there yet: run this again then"
        elif not n_missing:
            yield f"{folder}: everything is answered"


def _about(batch: Batch) -> str:
    name = "/".join((batch.backbone, batch.actor, *batch.shard))
    why = "; ".join(batch.found.why[:_SHOWN]) + ("; ..." if len(batch.found.why) > _SHOWN else "")
    said = f"{name}: {len(batch.found.replies)} of {len(batch.requests)} requests are answered"
    return said + (f" ({why})" if why else "")


def _problems(folder: Path, batches: list[Batch]) -> Iterator[str]:
    responses = read_responses(folder / "responses")
    known = {request.custom_id for batch in batches for request in batch.requests}
    strange = [lines[0].where for custom_id, lines in responses.lines.items() if custom_id not in known]
    if strange:
        yield (
            f"{responses.folder}: {len(strange)} custom_ids are of no request of this study, such as that of"
            f" {strange[0]}: they answer something else, or an earlier form of a question. They are not read."
        )
    if responses.broken:
        yield f"{responses.folder}: {len(responses.broken)} lines are no response, such as {responses.broken[0]}."


def _parts(folder: Path, batches: list[Batch], url_of: ImageUrl) -> Iterator[tuple[Path, int]]:
    """Write files that a batch service takes, and yield each with its number of requests."""
    part: list[bytes] = []
    size, number = 0, 0
    for line in _lines(batches, url_of):
        if part and (len(part) == _MOST_LINES or size + len(line) > _MOST_BYTES):
            number += 1
            yield _write(folder, number, part)
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield _write(folder, number + 1, part)


def _lines(batches: list[Batch], url_of: ImageUrl) -> Iterator[bytes]:
    for batch in batches:
        for request in batch.found.missing:
            yield json.dumps(line_of(request, batch.manifest, url_of)).encode() + b"\n"


def _write(folder: Path, number: int, part: list[bytes]) -> tuple[Path, int]:
    file = folder / f"requests-{number:03d}.jsonl"
    file.write_bytes(b"".join(part))
    return file, len(part)
