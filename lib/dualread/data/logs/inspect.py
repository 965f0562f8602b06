"""Logs of Inspect (inspect_ai, UK AI Security Institute): .eval archives, and .json with the same content.

An archive holds `samples/<id>_epoch_<n>.json` and, once the run has ended, `header.json`. Members are compressed by
Zstandard in today's versions and by Deflate in those before; logs of 0.3.285 and 0.3.60 were read. The first epoch is
the answer that is judged; its further epochs are draws. An image is identified by its content, which samples hold as
attachments, unless every sample has `metadata.image_id`.
"""

import io
import json
import struct
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from dualread.data.logs._files import Left, read_bytes, reason
from dualread.data.logs.base import Log, LoggedSample, Score, flat, image_identity, need, refuse_repeated, texts
from dualread.errors import DataError
from dualread.grading.options import accepted

SUFFIXES = [".eval", ".json"]
FIELDS = []
CONFIDENCE = (
    "In Inspect, log token probabilities (inspect eval --logprobs), ask each question several times (--epochs 5), or"
    " have the model state <confidence>NN</confidence>"
)

_ZSTANDARD = 93  # the number of the method in a zip archive
_READ = (
    *("id", "epoch", "input", "target", "output", "choices", "scores", "metadata", "attachments"),
    *("error", "invalidation"),
)
_WRITTEN_BY = "Inspect (since 0.3)"


def read_log(path: Path) -> Log:
    """Read one log.

    Raises:
        DataError: The file is damaged or cut off, is no log of Inspect, or has no sample; or two samples have the same
            id and epoch.
        ModuleNotFoundError: The archive is compressed by Zstandard, and the package is not installed.
    """
    header, records = _of_archive(path) if zipfile.is_zipfile(path) else _of_json(path)
    if not records:
        raise DataError(f"{path}: holds no samples{_state(header)}. Expected at least one finished sample.")
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise DataError(f"{path}: its samples are no list of objects. Is this a log of another harness?")
    need(path, records, ("id", "epoch", "input", "target", "output"), _WRITTEN_BY)
    refuse_repeated(path, (f"{record['id']} (epoch {record['epoch']})" for record in records))
    by_question: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record["epoch"]):
        by_question[str(record["id"])].append(record)
    named = all("image_id" in (record.get("metadata") or {}) for record in records)
    samples, left_out, lost = [], Counter(), 0
    for name, epochs in by_question.items():
        first, *others = epochs
        if (why := _why_not(first)) is not None:
            left_out[why] += 1
            continue
        draws = [record for record in others if _why_not(record) is None]
        lost += len(others) - len(draws)
        samples.append(_sample(name, first, draws, named))
    return Log(samples=samples, left_out=left_out, notes=_notes(header, by_question, named, lost))


def _of_archive(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            names = [member for member in archive.infolist() if member.filename.endswith(".json")]
            found = {member.filename: member for member in names if member.filename.startswith("samples/")}
            head = next((m for m in names if m.filename == "header.json"), None)
            head = head or next((m for m in names if m.filename == "_journal/start.json"), None)
            left = Left(path)
            left.unpack(sum(member.file_size for member in (*found.values(), *([head] if head else []))))
            header = _parsed(file, head, left) if head else {}
            return header, [_needed(_parsed(file, member, left)) for member in found.values()]
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, NotImplementedError) as error:
        raise DataError(
            f"{path}: is damaged ({reason(error)}). Copy it again, or let `inspect log recover` write it."
        ) from error
    except RecursionError as error:
        raise DataError(f"{path}: a sample in it is nested too deeply. Is this a log of Inspect?") from error


def _parsed(file: IO[bytes], member: zipfile.ZipInfo, left: Left) -> Any:
    content = _content(file, member)
    left.hold(sum(map(content.count, (b",", b"[", b"{"))))
    return json.loads(content)


def _needed(record: Any) -> Any:
    """Return what is read of a sample; its events alone may be larger than all the rest."""
    return {key: record[key] for key in _READ if key in record} if isinstance(record, dict) else record


def _content(file: IO[bytes], member: zipfile.ZipInfo) -> bytes:
    """Return the content of a member; Python's zipfile has no Zstandard before 3.14.

    No more is unpacked than the archive's directory says.

    Raises:
        ValueError: The content is not what the archive's directory says, or is compressed in another way.
    """
    file.seek(member.header_offset)
    header = file.read(30)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise ValueError(f"{member.filename}: no member here")
    file.seek(sum(struct.unpack("<HH", header[26:30])), io.SEEK_CUR)
    packed = file.read(member.compress_size)
    size = member.file_size + 1
    if member.compress_type == _ZSTANDARD:
        from zstandard import ZstdDecompressor, ZstdError

        try:
            content = ZstdDecompressor().stream_reader(io.BytesIO(packed), read_across_frames=True).read(size)
        except ZstdError as error:
            raise ValueError(f"{member.filename}: {error}") from error
    elif member.compress_type == zipfile.ZIP_DEFLATED:
        content = zlib.decompressobj(-15).decompress(packed, size)
    elif member.compress_type == zipfile.ZIP_STORED:
        content = packed
    else:
        raise ValueError(f"{member.filename}: is compressed by the unknown method {member.compress_type}")
    if zlib.crc32(content) != member.CRC:
        raise ValueError(f"{member.filename}: wrong checksum")
    return content


def _of_json(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: is neither an archive nor JSON ({reason(error)}): it is cut off, being written, or no log of"
            " Inspect. Copy it again; after a crash, `inspect log recover` writes a log of the samples that were"
            " finished."
        ) from error
    if not isinstance(content, dict) or "eval" not in content:
        lists = "is one JSON list and " if isinstance(content, list) else ""
        raise DataError(
            f"{path}: {lists}has no key 'eval', which a log of Inspect has. Is this a log of another harness?"
        )
    records = content.get("samples") or []
    return content, list(map(_needed, records)) if isinstance(records, list) else records


def _why_not(record: Mapping[str, Any]) -> str | None:
    """Return why a sample is no answer, or None if it is one."""
    if record.get("error"):
        return "the sample failed in Inspect"
    if record.get("invalidation"):
        return "the sample was invalidated in Inspect"
    if not (record["output"] or {}).get("choices"):
        return "the model gave no output"
    return None


def _sample(name: str, record: Mapping[str, Any], draws: Sequence[Mapping[str, Any]], named: bool) -> LoggedSample:
    metadata = record.get("metadata") or {}
    text, images = _input(record)
    options = tuple(record["choices"]) if isinstance(record.get("choices"), list) else ()
    return LoggedSample(
        sample_id=name,
        question=text,
        references=accepted([one for one in _targets(record["target"]) if one], options),
        completions=tuple(_completion(one) for one in (record, *draws)),
        scores=_scores(record, draws),
        tokens=_tokens(record),
        options=options,
        image=str(metadata["image_id"]) if named else image_identity(images),
        others=flat("metadata", metadata),
    )


def _scores(record: Mapping[str, Any], draws: Sequence[Mapping[str, Any]]) -> dict[str, Score]:
    """Return the scores of the first epoch, with the answers that the same scorer read in the further ones."""
    found = {}
    for scorer, score in (record.get("scores") or {}).items():
        answers = [((one.get("scores") or {}).get(scorer) or {}).get("answer") for one in draws]
        read = tuple(map(str, answers)) if answers and None not in answers else None
        value = score.get("value")
        parts = {f"{scorer}.{key}": one for key, one in value.items()} if isinstance(value, dict) else {scorer: value}
        found |= {name: Score(value=one, answer=score.get("answer"), draws=read) for name, one in parts.items()}
    return found


def _targets(target: Any) -> tuple[str, ...]:
    return (target,) if isinstance(target, str) else texts(target)


def _input(record: Mapping[str, Any]) -> tuple[str | None, list[str]]:
    """Return the text of the user's messages, and the images in them, with attachments put in their place."""
    attachments = record.get("attachments") or {}

    def attached(text: str) -> str:
        return attachments.get(text.removeprefix("attachment://"), text)

    if isinstance(record["input"], str):
        return attached(record["input"]), []
    said, images = [], []
    for message in record["input"]:
        if message.get("role") != "user":
            continue
        content = message.get("content")
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
            if part.get("type") == "text":
                said.append(attached(part["text"]))
            elif part.get("type") == "image":
                images.append(attached(part["image"]))
    return "\n".join(said) or None, [image for image in images if not image.startswith("attachment://")]


def _completion(record: Mapping[str, Any]) -> str:
    """Return the text that the model wrote, without its reasoning."""
    content = record["output"]["choices"][0]["message"].get("content") or ""
    if not isinstance(content, str):
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    return (record.get("attachments") or {}).get(content.removeprefix("attachment://"), content)


def _tokens(record: Mapping[str, Any]) -> tuple[tuple[bytes, float], ...] | None:
    logged = record["output"]["choices"][0].get("logprobs") or {}
    return (
        tuple(
            (bytes(token["bytes"]) if token.get("bytes") else token["token"].encode(), float(token["logprob"]))
            for token in logged.get("content") or ()
        )
        or None
    )


def _state(header: Mapping[str, Any]) -> str:
    status = header.get("status", "not ended")
    return "" if status == "success" else f" (its status: {status})"


def _notes(header: Mapping[str, Any], found: Mapping[str, Sequence[Any]], named: bool, lost: int) -> list[str]:
    notes = []
    if state := _state(header):
        asked = (header.get("eval", {}).get("dataset") or {}).get("sample_ids") or ()
        missing = len({str(name) for name in asked} - set(found))
        notes.append(f"the run did not end well{state}: {missing} of its questions have no sample here")
    if lost:
        notes.append(f"further epochs that failed and are not among the draws: {lost}")
    if named:
        notes.append("image_id is metadata.image_id")
    return notes
