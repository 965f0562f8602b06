"""Logs of Inspect (inspect_ai, UK AI Security Institute), .eval and .json, as Inspect itself reads them.

The first epoch is the answer that is judged; further epochs are draws. An image is identified by its content, which
samples hold as attachments, unless every sample has `metadata.image_id`.
"""

import zipfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dualread import limits
from dualread.data.logs.base import Log, LoggedSample, flat, image_identity
from dualread.errors import DataError, in_a_line

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample  # pyright: ignore[reportMissingImports]  # the extra `inspect-ai`

SUFFIXES = [".eval", ".json"]
CONFIDENCE = (
    "In Inspect, log token probabilities (inspect eval --logprobs), ask each question several times (--epochs 5), or"
    " have the model state <confidence>NN</confidence>"
)

_NOT_READ = {"store", "events", "events_data", "messages", "timelines"}  # may be larger than all the rest


def read_log(path: Path) -> Log:
    """Read one log; DataError if Inspect cannot, or if it has no sample."""
    from inspect_ai.log import read_eval_log  # pyright: ignore[reportMissingImports]

    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                n_bytes = sum(member.file_size for member in archive.infolist())
            if n_bytes > limits.unpacked_bytes(path.stat().st_size):
                raise ValueError(f"it unpacks to {n_bytes:,} bytes")
        log = read_eval_log(path, resolve_attachments=True, exclude_fields=_NOT_READ)
    except Exception as error:  # whatever its parsers raise
        raise DataError(f"{path}: inspect_ai cannot read it ({in_a_line(error)}). Copy it again.") from error
    epochs: dict[str, list[EvalSample]] = defaultdict(list)
    for sample in sorted(log.samples or (), key=lambda sample: sample.epoch):
        epochs[str(sample.id)].append(sample)
    named = all("image_id" in sample.metadata for sample in log.samples or ())
    left_out, samples = Counter(), []
    for name, (first, *others) in epochs.items():
        if _is_answered(first):
            samples.append(_sample(name, [first, *filter(_is_answered, others)], named))
        left_out.update({} if _is_answered(first) else {"the sample failed in Inspect, or has no output": 1})
    lost = sum(not _is_answered(draw) for _, *others in epochs.values() for draw in others)
    notes = [f"further epochs that failed and are not among the draws: {lost}"] if lost else []
    notes += [] if log.status == "success" else [f"the run did not end well (its status: {log.status})"]
    return Log(samples=samples, left_out=left_out, notes=notes)


def _is_answered(sample: "EvalSample") -> bool:
    return not sample.error and not sample.invalidation and bool(sample.output.choices)


def _sample(name: str, draws: Sequence["EvalSample"], named: bool) -> LoggedSample:
    first = draws[0]
    asked = [] if isinstance(first.input, str) else [message for message in first.input if message.role == "user"]
    images = [
        part.image for turn in asked if isinstance(turn.content, list) for part in turn.content if part.type == "image"
    ]
    tokens = first.output.choices[0].logprobs
    scores, answers = {}, {}
    for scorer, score in (first.scores or {}).items():
        parts = (
            {f"{scorer}.{key}": value for key, value in score.value.items()} if isinstance(score.value, dict) else {}
        )
        scores |= parts or {scorer: score.value}
        read = [(draw.scores or {})[scorer].answer if scorer in (draw.scores or {}) else None for draw in draws]
        answers |= dict.fromkeys(
            parts or [scorer], read if None not in read else [answer for answer in read[:1] if answer is not None]
        )
    return LoggedSample(
        sample_id=name,
        question=first.input if isinstance(first.input, str) else "\n".join(turn.text for turn in asked) or None,
        references=[target for target in ([first.target] if isinstance(first.target, str) else first.target) if target],
        completions=[draw.output.completion for draw in draws],
        scores=scores,
        scored_answers=answers,
        tokens=[
            (bytes(token.bytes) if token.bytes else token.token.encode(), token.logprob)
            for token in (tokens.content if tokens else ())
        ],
        options=first.choices or (),
        image=str(first.metadata["image_id"]) if named else image_identity(images),
        others=flat("metadata", first.metadata),
    )
