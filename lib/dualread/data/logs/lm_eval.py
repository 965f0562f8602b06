"""Sample logs of lm-eval (EleutherAI's lm-evaluation-harness, since 0.4.3): samples_<task>_<date>.jsonl.

A file has one row per question and filter; where there are several filters, a filter's name ends the name of its scores
("exact_match,strict-match"), as in lm-eval's own tables. Of a multiple-choice task, the log holds the log-likelihood of
every choice. The choice that a score judges is the likeliest, for `acc_norm` per character, for `acc_bytes` per byte;
where this does not give the logged score, or for other scores, there is no confidence. Images are not in the log.
"""

import math
from ast import literal_eval
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dualread.data.logs.base import Log, LoggedSample, flat, read_objects

SUFFIXES = [".jsonl", ".json"]
CONFIDENCE = (
    "In lm-eval, use a task of the output type multiple_choice, whose log-likelihoods are logged, or one with `repeats`"
    " whose answers are whole completions, or have the model state <confidence>NN</confidence>"
)

_KEYS = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics")
_NO_MATCH = "[invalid]"  # what lm-eval's filters write where they find no answer
_LENGTHS: Mapping[str, Callable[[str], int]] = {  # by which a choice's log-likelihood is divided
    "acc": lambda text: 1,
    "acc_norm": len,
    "acc_bytes": lambda text: len(text.encode()),
}


def read_log(path: Path) -> Log:
    """Read one sample log."""
    rows = read_objects(path, _KEYS, ("doc_id", "filter"))
    several, samples = len({row["filter"] for row in rows}) > 1, dict[str, dict[str, Any]]()
    for row in rows:
        requests = [tuple(request.values()) for request in row["arguments"].values()]  # context, and choice or settings
        values = {f"{name},{row['filter']}" if several else name: row[name] for name in row["metrics"]}
        target = literal_eval(row["target"]) if str(row["target"])[:1] == "[" else row["target"]  # as Python prints it
        golds = [str(gold) for gold in (target if isinstance(target, list) else [target])]
        fields = (_of_choices if isinstance(requests[0][1], str) else _of_text)(row, requests, golds, values)
        known = samples.setdefault(str(row["doc_id"]), {"question": requests[0][0], **fields})
        for name in ("scores", "scored_answers"):
            known[name] = known.get(name, {}) | fields.get(name, {})
    others = {str(row["doc_id"]): flat("doc", row["doc"]) for row in rows}
    return Log(samples=[LoggedSample(sample_id=name, others=others[name], **known) for name, known in samples.items()])


def _of_text(row: Mapping[str, Any], requests: Any, golds: list[str], values: Mapping[str, Any]) -> dict[str, Any]:
    draws, answer = [str(draw) for draw in row["resps"][0]], row["filtered_resps"][0]
    read = [str(answer[0] if isinstance(answer, list) else answer)]
    is_of_first = read == [_NO_MATCH] or read[0] in draws[0]  # a majority vote, for instance, may judge another draw
    scores = {name: value if is_of_first else None for name, value in values.items()}
    answers = dict.fromkeys(values, [] if read == [_NO_MATCH] else read)
    return {"references": golds, "completions": draws, "scores": scores, "scored_answers": answers}


def _of_choices(row: Mapping[str, Any], requests: Any, golds: list[str], values: Mapping[str, Any]) -> dict[str, Any]:
    half = len(requests) // 2  # the second half is without the question, for acc_mutual_info
    n = half if len(requests) > 2 and not any(context for context, _ in requests[half:]) else len(requests)
    choices = [choice.strip() for _, choice in requests[:n]]
    sums = [float(pair[0]) for pair in row["filtered_resps"][:n]]
    gold = {k for target in golds for k, choice in enumerate(choices) if target.strip() in (str(k), choice)}
    fields: dict[str, Any] = {"references": [choices[k] for k in gold], "scores": values}
    for name, value in values.items():
        length = _LENGTHS.get(name.partition(",")[0])
        if length and n > 1 and all(map(math.isfinite, sums)):  # one choice is the gold answer: nothing was chosen
            scaled = [total / max(length(choice), 1) for total, choice in zip(sums, choices, strict=True)]
            best = scaled.index(max(scaled))
            if (best in gold) == (value in (1, 1.0)):
                share = 1 / math.fsum(math.exp(min(total - sums[best], 700)) for total in sums)
                fields.setdefault("choice_likelihoods", {})[name] = share
                fields.setdefault("scored_answers", {})[name] = [choices[best]]
    return fields
