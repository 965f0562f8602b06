"""Stage read_answers: a service's responses to one shard, or one view -> what generation writes of an actor of our own.

A shard with `decoding` gives generations.parquet, or its parts; and, where likelihoods are needed, tokens.parquet for
the stage read_likelihoods. A shard with `choices` gives choices.parquet. What services do not tell is not made up:
`token_ids` is empty, `token_log_probs` too where none were asked for, `prompt_sha256` is the id of the request, and
`n_prompt_tokens` is 0 where the service does not count. Nothing reads these columns of given answers, whose costs are
not measured.

Inputs: `responses`, a folder; `manifest`; `pairs` where a donor's image is shown; `generations`, the committed
completions, for a view of them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dualread.artifacts.tables import RowWriter, from_many_rows, write_table
from dualread.grading.parse import text_after_thinking
from dualread.models.service.replies import ServiceReply, word_log_probs
from dualread.models.service.requests import ServiceRequest, needs_likelihoods, requests_of
from dualread.models.service.responses import Found, read_responses
from dualread.schema.answers import ReadAnswersSpec
from dualread.schema.columns import CHOICES, GENERATIONS, TOKENS
from dualread.stages._asked import read_asked


def compute(spec: ReadAnswersSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write the completions or choices; every question that the shard asks must be answered."""
    responses = Found(read_responses(inputs["responses"]))
    replies = responses.replies(requests_of(spec.shard, spec.service, read_asked(spec.shard, inputs)))
    text = _completions(spec, replies, out) if spec.shard.choices is None else _choices(spec, replies, out)
    responses.refuse_missing(spec.shard.name)
    return f"read {responses.n_requests} responses, {text}"


def _completions(spec: ReadAnswersSpec, replies: Iterator[tuple[ServiceRequest, ServiceReply]], out: Path) -> str:
    reasons, is_view = Counter[str](), "/" in spec.shard.condition
    completions = RowWriter(out, GENERATIONS)
    tokens = RowWriter(out, TOKENS) if needs_likelihoods(spec.shard, spec.service) else None
    for request, reply in replies:
        for index, choice in enumerate(reply.choices):
            reasons[choice.finish_reason] += 1
            key = {"sample_id": request.question.sample_id, "sample_index": request.first + index}
            log_probs = [token.log_prob for token in choice.tokens or ()]
            completions.write(
                {
                    **key,
                    "condition": spec.shard.condition,
                    "image_id": request.question.image_id,
                    "prompt_sha256": request.custom_id,
                    "n_prompt_tokens": reply.n_prompt_tokens,
                    "token_ids": [],
                    "token_log_probs": log_probs,
                    # Of a view, readers see what follows the thinking.
                    "text": text_after_thinking(choice.text, spec.shard.thinking_ends) or ""
                    if is_view
                    else choice.text,
                    "finish_reason": choice.finish_reason,
                }
            )
            if tokens is not None:
                n_bytes = [len(token.content) for token in choice.tokens or ()]
                tokens.write({**key, "n_bytes": n_bytes, "log_probs": log_probs})
    completions.close()
    if tokens is not None:
        tokens.close()
    return f"wrote {reasons.total()} completions, {reasons['length']} cut at the limit"


def _choices(spec: ReadAnswersSpec, replies: Iterator[tuple[ServiceRequest, ServiceReply]], out: Path) -> str:
    assert spec.shard.choices is not None, "the shard has choices"
    words = spec.shard.choices.words or ()  # `requests_of` refuses integers
    n_of: Counter[str] = Counter()

    def rows() -> Iterator[dict[str, Any]]:
        for request, reply in replies:
            scored = word_log_probs(reply.choices[0], words)
            if scored is None:
                n_of["without"] += 1
                continue
            log_probs, is_bounded = scored
            n_of["bounded"] += is_bounded
            for word, log_prob in log_probs.items():
                yield {
                    "sample_id": request.question.sample_id,
                    "condition": spec.shard.condition,
                    "choice": word,
                    "log_prob": log_prob,
                    "n_prompt_tokens": reply.n_prompt_tokens,
                }

    table = from_many_rows(rows(), CHOICES)
    write_table(out / "choices.parquet", table, CHOICES)
    return (
        f"scored {table.height} choices; in {n_of['bounded']} responses a word is not listed and has the largest"
        f" probability that it can have, in {n_of['without']} none is listed and there is no score"
    )
