"""The replies of the OpenAI API for chats, whole or as the events of a stream, and what is added: `dualread`."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from dualread.apps.serve.outcome import Outcome
from dualread.apps.serve.service import Abstained, Answer, AnsweringService, Before, EarlyReading, News, TextPart
from dualread.evaluation.metrics.risk_control import DELTA
from dualread.evaluation.thresholds import CERTIFIED, Decision, Threshold
from dualread.models.streams import TokenEvent


class ReplyWriter:
    """Writes the reply to one request, as far as it is known."""

    def __init__(self, outcome: Outcome, service: AnsweringService, model: str):
        assert outcome.asked is not None
        self._outcome, self._service, self._model = outcome, service, model
        self._sent, self._n = outcome.asked.sent, outcome.asked.sent.n
        self._parts: dict[int, tuple[str, list[TokenEvent]]] = {}  # that were not sent
        self._begun = False

    def whole(self) -> dict[str, Any]:
        """Return the whole reply, when all answers are there."""
        outcome = self._outcome
        if outcome.abstained is None:
            choices = [
                {
                    **self._choice(answer.index, answer.completion.finish_reason, answer.tokens),
                    "message": {"role": "assistant", "content": answer.completion.text, "refusal": None},
                    "dualread": self._judged(answer),
                }
                for answer in sorted(outcome.answers, key=lambda answer: answer.index)
            ]
        else:
            message = {"role": "assistant", "content": None, "refusal": refusal(outcome.abstained)}
            judged = of_abstention(outcome.abstained)
            choices = [{**self._choice(i, "stop"), "message": message, "dualread": judged} for i in range(self._n)]
        # Once more, because litellm and langchain-openai keep nothing else of a whole reply.
        usage = {**self._usage(), "dualread": [choice["dualread"] for choice in choices]}
        return {**self._head("chat.completion"), "choices": choices, "usage": usage}

    def events(self, news: News, *, has_more: bool) -> Iterator[dict[str, Any]]:
        """Yield what a stream says of one piece of news: PSR, then text and claims, and all that is known at the end.

        The last event of a choice says it in `delta`, too, because a client that adds up a stream keeps only what is
        there. With `has_more` news already there, tokens wait: those that come together are sent together.
        """
        choices: list[dict[str, Any]] = []
        if not self._begun:
            self._begun = True
            head = {
                "delta": {"role": "assistant", "content": ""},
                "dualread": {"psr": news.psr if isinstance(news, Before | Abstained) else None},
            }
            choices += [{**self._choice(i, None), **head} for i in range(self._n)]
        if isinstance(news, TextPart):
            text, tokens = self._parts.get(news.index, ("", []))
            self._parts[news.index] = (text + news.text, [*tokens, *news.tokens])
        if not has_more or not isinstance(news, TextPart):
            for i, (text, tokens) in sorted(self._parts.items()):
                choices.append({**self._choice(i, None, tokens), "delta": {"content": text}})
            self._parts.clear()
        if isinstance(news, EarlyReading):  # not in `delta`: who adds up a stream would have these claims twice
            claims = [asdict(claim) for claim in news.claims]
            choices.append({**self._choice(news.index, None), "delta": {}, "dualread": {"claims": claims}})
        if isinstance(news, Answer):
            judged = self._judged(news)
            end = self._choice(news.index, news.completion.finish_reason, news.tokens)
            # Once more, because litellm and langchain-openai keep nothing else of a stream.
            end["logprobs"] = {**(end["logprobs"] or {"content": None, "refusal": None}), "dualread": judged}
            delta = {**({"content": news.text} if news.text else {}), "dualread": judged}
            choices.append({**end, "delta": delta, "dualread": judged})
        if isinstance(news, Abstained):
            judged = of_abstention(news)
            delta = {"refusal": refusal(news), "dualread": judged}
            choices += [{**self._choice(i, "stop"), "delta": delta, "dualread": judged} for i in range(self._n)]
        for choice in choices:
            yield {**self._head("chat.completion.chunk"), "choices": [choice]}

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield the last event of a stream: the counts of tokens, if they are wanted."""
        if self._sent.stream_options.include_usage:
            yield {**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage()}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._outcome.name, "object": kind, "created": int(time.time()), "model": self._model}

    def _usage(self) -> dict[str, Any]:
        n_prompt, n_completion = self._outcome.n_prompt, self._outcome.n_completion
        return {"prompt_tokens": n_prompt, "completion_tokens": n_completion, "total_tokens": n_prompt + n_completion}

    def _choice(self, index: int, finish_reason: str | None, tokens: Sequence[TokenEvent] = ()) -> dict[str, Any]:
        wire = self._service.pieces.to_wire
        content = [{**wire(t.token, t.log_prob), "top_logprobs": [wire(*choice) for choice in t.top]} for t in tokens]
        log_probs = {"content": content, "refusal": None}
        return {
            "index": index,
            "finish_reason": finish_reason,
            "logprobs": log_probs if self._sent.logprobs and (tokens or finish_reason) else None,
        }

    def _judged(self, answer: Answer) -> dict[str, Any]:
        return of_answer(answer, self._service.loaded.readers.threshold)


# What is said about an answer in every reply.
_UNJUDGED = {
    **dict.fromkeys(("answer", "confidence", "psr", "per", "distance_percentile")),
    **{"methods": {}, "answer_sets": [], "claims": None, "threshold": None, "abstain": None, "notes": []},
}


def of_answer(answer: Answer, threshold: Threshold | None) -> dict[str, Any]:
    """Return what is said about an answer: all confidences are null where readers cannot judge it."""
    reading, decision = answer.reading, answer.decision
    said = {"psr": answer.psr} if reading is None else asdict(reading)
    kind = "answers" if reading is None or reading.claims is None else "claims"
    judged = {
        **{name: said.get(name, none) for name, none in _UNJUDGED.items()},
        "threshold": None if threshold is None else _threshold(threshold, decision, kind),
        "abstain": None if decision is None or decision.keep is None else not decision.keep,
        "notes": list(answer.notes),
    }
    return _finite(judged)


def of_abstention(abstained: Abstained) -> dict[str, Any]:
    """Return what is said where no answer was made."""
    notes = [refusal(abstained), *abstained.notes]
    return {**_UNJUDGED, "psr": abstained.psr, "abstain": True, "notes": notes}


def refusal(abstained: Abstained) -> str:
    """Return the sentence in place of an answer."""
    return (
        f"No answer was made: PSR, the probability that the model can answer this, is {abstained.psr:.4f}, below"
        f" {abstained.limit:.4f}."
    )


def _finite(value: Any) -> Any:
    """Return a value of JSON with null in the place of numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _threshold(threshold: Threshold, decision: Decision | None, kind: str) -> dict[str, Any]:
    target = threshold.target_risk_percent
    if threshold.value is None:
        statement = f"There is no {threshold.rule} threshold for a risk of {target}%: {threshold.reason}"
    elif threshold.rule == CERTIFIED:
        statement = (
            f"Of new {kind} with at least this confidence, at most {target}% are wrong, if images come from where the"
            " validation images came from. By bad luck with these, the statement is wrong with a probability of at most"
            f" {DELTA:.0%}."
        )
    else:
        statement = (
            f"Of the validation {kind} with at least this confidence, at most {target}% were wrong. About new"
            f" {kind}, this promises nothing."
        )
    return {
        "value": threshold.value,
        "rule": threshold.rule,
        "target_risk_percent": target,
        "decision": None if decision is None else decision.reason,
        "statement": statement,
    }
