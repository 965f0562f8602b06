"""Answers of a study as the responses of a service: what a study of given answers needs to repeat another one.

Token log-probabilities are given in full precision: they are computed again by a replay, because tables keep 32 bits.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from dualread.apps.ask.sending import RequestBatch
from dualread.apps.ask.study import Asking
from dualread.artifacts.tables import read_parts, read_table
from dualread.models.actor import ReadSpec, read_states
from dualread.models.backbones.checkpoint import Opened, open_checkpoint
from dualread.schema.columns import CHOICES, GENERATIONS
from dualread.schema.recorded import Facts
from dualread.schema.study import Config

LogProbs = Callable[[RequestBatch, pl.DataFrame], dict[str, Sequence[float]]]


class Source:
    """The run of an actor in a finished study."""

    def __init__(self, results: Path, run: str, config: Config) -> None:
        self._results, self._run, self._config = results, run, config
        backbone = run.partition("/")[0]
        facts = Facts.read(results / "facts" / run.split("/")[0] / "base/0/facts.json")
        settings = config.backbones[backbone].opening()
        self.actor: Opened = open_checkpoint(results / "actors" / run / "checkpoint", settings, facts)

    def rows(self, shard: Sequence[str]) -> pl.DataFrame:
        kind = "views" if len(shard) == 4 else "generations"
        folder = self._results / kind / self._run / "/".join(shard)
        if (folder / "choices.parquet").exists():
            return read_table(folder / "choices.parquet", CHOICES)
        return read_parts(folder, GENERATIONS).sort("sample_id", "sample_index")

    def exact(self, batch: RequestBatch, rows: pl.DataFrame) -> dict[str, Sequence[float]]:
        """The log-probabilities of a replay, by sample_id, in 64 bits."""
        questions = {request.question.sample_id: request.question for request in batch.requests()}
        requests = []
        for sample_id in rows["sample_id"]:
            requests.append(questions[sample_id].request(batch.body.keywords["manifest"]))
        spec, size = ReadSpec(kappa=self._config.replay.kappa), self._config.replay.settings.batch_size
        replayed = read_states(self.actor, requests, rows["token_ids"].to_list(), spec, batch_size=size)
        return dict(zip(rows["sample_id"], (one.token_log_probs.tolist() for one in replayed), strict=True))


def stored(batch: RequestBatch, rows: pl.DataFrame) -> dict[str, Sequence[float]]:
    """The log-probabilities that a study keeps of its generation, in 32 bits."""
    return dict(zip(rows["sample_id"], rows["token_log_probs"].to_list(), strict=True))


def responses(asking: Asking, folder: Path, source: Source, log_probs: LogProbs) -> Iterator[dict[str, Any]]:
    """Yield a line for each open request that the study has an answer to."""
    for batch in asking.batches(folder):
        rows = source.rows(batch.name.split("/")[2:])
        by_id = {sample_id: of.to_dicts() for (sample_id,), of in rows.group_by("sample_id", maintain_order=True)}
        known = log_probs(batch, rows) if any(r.log_probs for r in batch.requests()) and "text" in rows.columns else {}
        for request in batch.open():
            of = by_id[request.question.sample_id]
            if "choice" in rows.columns:
                choices = [_words(of)]
            else:
                chosen = of[request.first : request.first + request.n]
                choices = [_completion(source.actor, row, known.get(row["sample_id"])) for row in chosen]
            body = {
                "choices": [{"index": index, **choice} for index, choice in enumerate(choices)],
                "usage": {"prompt_tokens": of[0]["n_prompt_tokens"]},
            }
            yield {
                "id": f"batch_req_{request.custom_id[:8]}",
                "custom_id": request.custom_id,
                "response": {"status_code": 200, "request_id": "x", "body": body},
                "error": None,
            }


def write(path: Path, lines: Iterator[Mapping[str, Any]]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts))
    return len(texts)


def _completion(actor: Opened, row: Mapping[str, Any], log_probs: Sequence[float] | None) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": row["text"]}, "finish_reason": row["finish_reason"]}
    if log_probs is None:
        return choice
    pieces = [actor.encoder.decode([token]) for token in row["token_ids"]]
    assert "".join(pieces) == row["text"]
    content = [
        {"token": piece, "bytes": list(piece.encode()), "logprob": log_prob, "top_logprobs": []}
        for piece, log_prob in zip(pieces, log_probs, strict=True)
    ]
    return {**choice, "logprobs": {"content": content}}


def _words(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    top = [{"token": row["choice"], "logprob": row["log_prob"], "bytes": None} for row in rows]
    best = max(top, key=lambda one: one["logprob"])
    return {
        "message": {"role": "assistant", "content": best["token"]},
        "finish_reason": "length",
        "logprobs": {"content": [{**best, "top_logprobs": top}]},
    }
