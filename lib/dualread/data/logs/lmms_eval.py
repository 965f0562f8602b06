"""Sample logs of lmms-eval (EvolvingLMMs-Lab): <date>_samples_<task>.jsonl.

A file has one row per question; the fields that are not lmms-eval's own are scores. A score that is a mapping has its
value in `score`, and its other keys may be referred to as <name>.<key>. Images are in the log (`input_media`, since
0.6) only where the data set holds paths, addresses or bytes. Log-likelihoods of choices are not read, because
lmms-eval's models disagree about their sign and about whether they are sums or means.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread.data.logs.base import Log, LoggedSample, flat, image_identity, read_objects

SUFFIXES = [".jsonl", ".json"]
CONFIDENCE = (
    "In lmms-eval, ask each question several times (--repeats 5), or have the model state <confidence>NN</confidence>"
)

_KEYS = ("doc_id", "target", "input", "filtered_resps")
_OWN = (*_KEYS, "doc", "arguments", "resps", "token_counts", "doc_hash", "input_media")
_LIKELIHOOD = re.compile(r"\['?-?[0-9.e-]+'?, '?(?:True|False)'?\]")  # a log-likelihood, and whether it is the largest


def read_log(path: Path) -> Log:
    """Read one sample log."""
    samples = [_sample(row) for row in read_objects(path, _KEYS, ("doc_id",))]
    answered = [sample for sample in samples if sample.completions]
    lost = len(samples) - len(answered)
    return Log(
        samples=answered, left_out={"no answer, or log-likelihoods, whose sign is unknown": lost} if lost else {}
    )


def _sample(row: Mapping[str, Any]) -> LoggedSample:
    filtered = _draws(row["filtered_resps"])
    completions = _draws(row.get("resps", row["filtered_resps"]))  # it is missing where the filter changed nothing
    if len(filtered) == len(completions) and any("<answer>" in text or "<confidence>" in text for text in filtered):
        completions = filtered  # the reasoning that the filter cut away may mention the tags
    is_of_first = bool(filtered and completions) and filtered[0] in completions[0]  # unlike a majority vote
    values = {name: value for name, value in row.items() if name not in _OWN}
    target = row["target"] if isinstance(row["target"], list) else [row["target"]]
    others = {"doc": row.get("doc"), **{name: value for name, value in values.items() if isinstance(value, dict)}}
    return LoggedSample(
        sample_id=str(row["doc_id"]),
        question=row["input"] or None,
        references=[str(reference) for reference in target if reference is not None],
        completions=completions,
        scores={
            name: (value.get("score", value) if isinstance(value, dict) else value) if is_of_first else None
            for name, value in values.items()
        },
        scored_answers=dict.fromkeys(values, filtered[:1]),
        image=image_identity(row.get("input_media")),
        others={full: text for name, value in others.items() for full, text in flat(name, value).items()},
    )


def _draws(answers: Any) -> list[str]:
    """Return one text per draw: a log holds one, a list, or a list per request; none for log-likelihoods."""
    listed = answers if isinstance(answers, list) else [answers]
    if any(_LIKELIHOOD.fullmatch(str(answer)) for answer in listed):
        return []
    return [str(text) for answer in listed for text in (answer if isinstance(answer, list) else [answer])]
