"""Stage read_answers: a service's responses to one shard, or one view -> what generation writes of an actor of our own.

A shard with `decoding` gives generations.parquet, or its parts. A shard with `choices` gives choices.parquet. What
services do not tell is not made up: `token_ids` is empty, `token_log_probs` too where none were asked for,
`prompt_sha256` is the id of the request, and `n_prompt_tokens` is 0 where the service does not count. Nothing reads
these columns of given answers, whose costs are not measured.

Inputs: `responses`, a folder; `manifest`; `pairs` where a donor's image is shown; `generations`, the committed
completions, for a view of them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from dualread.artifacts.schemas.choices import CHOICES
from dualread.artifacts.schemas.generations import GENERATIONS
from dualread.artifacts.tables import from_rows, write_parts, write_table
from dualread.errors import ArtifactError
from dualread.models.service.choices import word_log_probs
from dualread.models.service.replies import Reply
from dualread.models.service.requests import Request, requests_of
from dualread.models.service.responses import complaint, find, read_responses
from dualread.specs.given import ReadAnswersSpec
from dualread.stages._asked import read_asked


def compute(spec: ReadAnswersSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write the completions or choices; every question that the shard asks must be answered."""
    requests = requests_of(spec.shard, spec.service, read_asked(spec.shard, inputs))
    responses = read_responses(inputs["responses"])
    found = find(requests, responses)
    if found.missing:
        raise ArtifactError(complaint(found, len(requests), spec.shard.name, responses))
    if spec.shard.choices is not None:
        return _choices(spec, requests, found.replies, out)
    return _completions(spec, requests, found.replies, out)


def _completions(spec: ReadAnswersSpec, requests: Sequence[Request], replies: Mapping[str, Reply], out: Path) -> str:
    rows = [
        {
            "sample_id": request.question.sample_id,
            "condition": spec.shard.condition,
            "sample_index": request.first + index,
            "image_id": request.question.image_id,
            "prompt_sha256": request.custom_id,
            "n_prompt_tokens": replies[request.custom_id].n_prompt_tokens,
            "token_ids": [],
            "token_log_probs": [token.log_prob for token in choice.tokens or ()],
            "text": choice.text,
            "finish_reason": choice.finish_reason,
        }
        for request in requests
        for index, choice in enumerate(replies[request.custom_id].choices)
    ]
    write_parts(out, from_rows(rows, GENERATIONS), GENERATIONS)
    n_cut = sum(row["finish_reason"] == "length" for row in rows)
    return f"read {len(requests)} responses, wrote {len(rows)} completions, {n_cut} cut at the limit"


def _choices(spec: ReadAnswersSpec, requests: Sequence[Request], replies: Mapping[str, Reply], out: Path) -> str:
    assert spec.shard.choices is not None, "the shard has choices"
    words = spec.shard.choices.words or ()  # `requests_of` refuses integers
    rows, n_bounded, n_without = [], 0, 0
    for request in requests:
        reply = replies[request.custom_id]
        found = word_log_probs(reply.choices[0], words)
        if found is None:
            n_without += 1
            continue
        log_probs, is_bounded = found
        n_bounded += is_bounded
        rows += [
            {
                "sample_id": request.question.sample_id,
                "condition": spec.shard.condition,
                "choice": word,
                "log_prob": log_prob,
                "n_prompt_tokens": reply.n_prompt_tokens,
            }
            for word, log_prob in log_probs.items()
        ]
    write_table(out / "choices.parquet", from_rows(rows, CHOICES), CHOICES)
    return (
        f"read {len(requests)} responses, scored {len(rows)} choices; in {n_bounded} responses a word is not listed and"
        f" has the largest probability that it can have, in {n_without} none is listed and there is no score"
    )
