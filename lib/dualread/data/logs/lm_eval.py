"""Sample logs of lm-eval (EleutherAI's lm-evaluation-harness): samples_<task>_<date>.jsonl, since version 0.4.

A few releases wrote one JSON list into this file.

A file has one row per question and filter, and a filter's name ends the name of its scores where there are several
("exact_match,strict-match"), as in lm-eval's own tables. Of a multiple-choice task, the log holds the log-likelihood of
every choice. Which choice a score judges follows from lm-eval's rules: the likeliest, for `acc_norm` per character, for
`acc_bytes` per byte. Where these rules do not give the logged score, the choice counts as unknown. Images are not in
the log.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dualread.data.logs._files import read_objects
from dualread.data.logs.base import Log, LoggedSample, Score, flat, is_likelihood, need, refuse_repeated, texts
from dualread.errors import DataError

SUFFIXES = [".jsonl", ".json"]
FIELDS = ["doc_id", "doc", "arguments", "filtered_resps"]
CONFIDENCE = (
    "In lm-eval, use a task of the output type multiple_choice, whose log-likelihoods are logged, or one with `repeats`"
    " whose answers are whole completions, or have the model state <confidence>NN</confidence>"
)

_OWN = (
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
)
_NO_MATCH = "[invalid]"  # what lm-eval's filters write where they find no answer
_LENGTHS = {
    "acc_norm": len,
    "acc_bytes": lambda text: len(text.encode()),
}  # by which a choice's log-likelihood is divided


def read_log(path: Path) -> Log:
    """Read one sample log.

    Raises:
        DataError: The file is damaged or no sample log of lm-eval, or a question occurs twice with one filter.
    """
    records, left_out = read_objects(path)
    need(path, records, ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps"), "lm-eval (since 0.4)")
    filters = list(dict.fromkeys(record.get("filter", "none") for record in records))
    refuse_repeated(path, (f"{record['doc_id']} (filter {record.get('filter', 'none')})" for record in records))
    by_question: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        by_question[str(record["doc_id"])].append(record)
    samples = []
    for name, rows in by_question.items():
        try:
            read = [_sample(name, row, with_filter=len(filters) > 1) for row in rows]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{path}: question {name}: is not as lm-eval writes it ({type(error).__name__}: {error}). This reader"
                " knows the versions 0.4.0 to 0.4.13."
            ) from error
        scores = {score: value for sample in read for score, value in sample.scores.items()}
        samples.append(replace(read[0], scores=scores))
    notes = []
    if any("metrics" not in record for record in records):
        notes.append("an older lm-eval wrote this log: what is not one of its own fields counts as a score")
    return Log(samples=samples, left_out=left_out, notes=notes)


def _sample(name: str, record: Mapping[str, Any], *, with_filter: bool) -> LoggedSample:
    requests = _requests(record["arguments"])
    metrics = record["metrics"] if "metrics" in record else [key for key in record if key not in _OWN]
    suffix = f",{record['filter']}" if with_filter else ""
    values = {metric: record[metric] for metric in metrics}
    common = {"sample_id": name, "question": requests[0][0], "others": flat("doc", record["doc"])}
    answers = record["filtered_resps"]
    if is_likelihood(answers[0]) and isinstance(requests[0][1], str):  # otherwise two draws may be "1" and "True"
        return _of_choices(record, requests, values, suffix, common)
    draws = tuple(map(str, record["resps"][0]))
    answer = answers[0] if isinstance(answers[0], str) else str(answers[0][0])
    read = None if answer == _NO_MATCH else answer
    of_first = read is None or read in draws[0]  # a majority vote, for instance, may judge another draw
    return LoggedSample(
        **common,
        references=texts(record["target"]),
        completions=draws,
        scores={f"{m}{suffix}": Score(value=value, answer=read, of_first=of_first) for m, value in values.items()},
    )


def _requests(arguments: Any) -> list[list[Any]]:
    """Return context and continuation (or settings) of each request; the form of the field changed in 0.4.3."""
    if isinstance(arguments, dict):
        return [[request[f"arg_{k}"] for k in range(len(request))] for request in arguments.values()]
    return arguments


def _of_choices(
    record: Mapping[str, Any],
    requests: Sequence[Sequence[str]],
    values: Mapping[str, Any],
    suffix: str,
    common: Mapping[str, Any],
) -> LoggedSample:
    likelihoods = [float(answer[0]) for answer in record["filtered_resps"]]
    n = len(likelihoods)
    if n % 2 == 0 and n > 2 and all(request[0] == "" for request in requests[n // 2 :]):
        likelihoods, n = likelihoods[: n // 2], n // 2  # the second half is without the question, for acc_mutual_info
    if n == 1:  # the likelihood of the gold answer; the model chose nothing
        return LoggedSample(
            **common, scores={f"{metric}{suffix}": Score(value=value) for metric, value in values.items()}
        )
    choices = [request[1].strip() for request in requests[:n]]
    gold = _gold(record["target"], choices)
    distinct = len(set(choices)) == n  # otherwise the contexts differ, as in Winogrande
    scores = {}
    for metric, value in values.items():
        length = _LENGTHS.get(metric, lambda text: 1)
        best = max(range(n), key=lambda k: likelihoods[k] / max(length(choices[k]), 1))
        told = bool(gold) and (best in gold) == (value in (1, 1.0))
        scores[f"{metric}{suffix}"] = Score(
            value=value, answer=choices[best] if told and distinct else None, choice=best if told else None
        )
    return LoggedSample(
        **common,
        references=tuple(choices[k] for k in gold) if distinct else (),
        scores=scores,
        choices=tuple(likelihoods),
    )


def _gold(target: Any, choices: Sequence[str]) -> list[int]:
    """Return the places of the gold choices, which the log names by place or by text."""
    found = []
    for text in texts(target):
        if text.isdecimal() and int(text) < len(choices):
            found.append(int(text))
        elif text.strip() in choices:
            found.append(choices.index(text.strip()))
    return found
