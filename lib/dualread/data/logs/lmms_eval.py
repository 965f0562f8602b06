"""Sample logs of lmms-eval (EvolvingLMMs-Lab): <date>_samples_<task>.jsonl.

A file has one row per question; the fields that are not lmms-eval's own are scores. A score that is a mapping has its
value in `score`, and its other keys may be referred to as <name>.<key>. Images are in the log (`input_media`, since
0.6) only where the data set holds paths, addresses or bytes, not where it holds opened images. Log-likelihoods of
choices are not used, because lmms-eval's models disagree about their sign and about whether they are sums or means.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread.data.logs._files import read_objects
from dualread.data.logs.base import (
    Log,
    LoggedSample,
    Score,
    flat,
    image_identity,
    is_likelihood,
    need,
    refuse_repeated,
    texts,
)

SUFFIXES = [".jsonl", ".json"]
FIELDS = ["doc_id", "input", "filtered_resps"]
CONFIDENCE = (
    "In lmms-eval, ask each question several times (--repeats 5), or have the model state <confidence>NN</confidence>"
)

_OWN = (
    *("doc_id", "doc", "target", "input", "arguments", "resps", "filtered_resps"),
    *("token_counts", "doc_hash", "input_media"),
)
_TAG = re.compile(r"<(?:answer|confidence)>")


def read_log(path: Path) -> Log:
    """Read one sample log.

    Raises:
        DataError: The file is damaged or no sample log of lmms-eval, or a question occurs twice.
    """
    records, left_out = read_objects(path)
    need(path, records, ("doc_id", "target", "input", "filtered_resps"), "lmms-eval")
    refuse_repeated(path, (str(record["doc_id"]) for record in records))
    samples, choices = [], 0
    for record in records:
        answers = _draws(record["filtered_resps"])
        choices += answers is None
        samples.append(_sample(record, answers or ()))
    notes = []
    if choices:
        notes.append(f"log-likelihoods of choices are not used, because their sign is unknown (questions: {choices})")
    return Log(samples=samples, left_out=left_out, notes=notes)


def _draws(answers: Any) -> tuple[str, ...] | None:
    """Return one text per draw, of which a log holds one, a list, or a list per request; None for log-likelihoods."""
    if not isinstance(answers, list):
        return (str(answers),)
    if any(map(is_likelihood, answers)):
        return None
    return tuple(text for one in answers for text in (map(str, one) if _is_texts(one) else [_first(one)]))


def _is_texts(one: Any) -> bool:
    return isinstance(one, list) and all(isinstance(text, str) for text in one)


def _first(one: Any) -> str:
    return str(one[0] if isinstance(one, list) and one else one)


def _sample(record: Mapping[str, Any], answers: tuple[str, ...]) -> LoggedSample:
    # The field is missing where the filter changed nothing. What a filter has left of a completion with the paper's
    # tags stands for it, because the reasoning that it cut away may mention them.
    whole = (_draws(record["resps"]) or ()) if answers and "resps" in record else answers
    completions = answers if len(answers) == len(whole) and any(map(_TAG.search, answers)) else whole
    read = answers[0] if answers else None
    of_first = read is None or read in "".join(completions[:1])  # a majority vote, for instance, may judge another draw
    scores, others = {}, {}
    for name, value in record.items():
        if name in _OWN:
            continue
        scored = value["score"] if isinstance(value, dict) and "score" in value else value
        scores[name] = Score(value=scored, answer=read, of_first=of_first)
        others |= flat(name, value) if isinstance(value, dict) else {}
    question = record["input"]
    return LoggedSample(
        sample_id=str(record["doc_id"]),
        question=question if isinstance(question, str) and question.strip() else None,
        references=texts(record["target"]),
        completions=completions,
        scores=scores,
        image=image_identity(record.get("input_media")),
        others={**flat("doc", record.get("doc") or {}), **others},
    )
