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

Json = dict[str, Any]


class ReplyWriter:
    """Writes the reply to one request, as far as it is known."""

    def __init__(self, outcome: Outcome, service: AnsweringService, model: str):
        assert outcome.asked is not None
        self._outcome, self._service, self._model = outcome, service, model
        self._sent, self.is_stream = outcome.asked.sent, outcome.asked.sent.stream
        self._parts: dict[int, tuple[str, list[TokenEvent]]] = {}  # that were not sent
        self._begun = False

    def whole(self) -> Json:
        """Return the whole reply, when all answers are there."""
        if (abstained := self._outcome.abstained) is None:
            choices = [
                {
                    **self._choice(answer.index, answer.completion.finish_reason, answer.tokens),
                    "message": {"role": "assistant", "content": answer.completion.text, "refusal": None},
                    "dualread": self._judged(answer),
                }
                for answer in sorted(self._outcome.answers, key=lambda answer: answer.index)
            ]
        else:
            message = {"role": "assistant", "content": None, "refusal": refusal(abstained)}
            choices = self._each("stop", message=message, dualread=of_abstention(abstained))
        # Once more, because litellm and langchain-openai keep nothing else of a whole reply.
        usage = {**self._usage(), "dualread": [choice["dualread"] for choice in choices]}
        return {**self._head("chat.completion"), "choices": choices, "usage": usage}

    def events(self, news: News, *, has_more: bool) -> Iterator[Json]:
        """Yield what a stream says of one piece of news: PSR, then text and claims, and all that is known at the end.

        The last event of a choice says it in `delta`, too, because a client that adds up a stream keeps only what is
        there. With `has_more` news already there, tokens wait: those that come together are sent together.
        """
        choices: list[Json] = []
        if not self._begun:
            self._begun = True
            psr = news.psr if isinstance(news, Before | Abstained) else None
            choices += self._each(None, delta={"role": "assistant", "content": ""}, dualread={"psr": psr})
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
            choices += self._each("stop", delta={"refusal": refusal(news), "dualread": judged}, dualread=judged)
        for choice in choices:
            yield {**self._head("chat.completion.chunk"), "choices": [choice]}
        if self._outcome.is_over and self._sent.stream_options.include_usage:
            yield {**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage()}

    def _head(self, kind: str) -> Json:
        return {"id": self._outcome.name, "object": kind, "created": int(time.time()), "model": self._model}

    def _usage(self) -> Json:
        n_prompt, n_completion = self._outcome.n_prompt, self._outcome.n_completion
        return {"prompt_tokens": n_prompt, "completion_tokens": n_completion, "total_tokens": n_prompt + n_completion}

    def _each(self, finish_reason: str | None, **more: Any) -> list[Json]:
        return [{**self._choice(index, finish_reason), **more} for index in range(self._sent.n)]

    def _choice(self, index: int, finish_reason: str | None, tokens: Sequence[TokenEvent] = ()) -> Json:
        wire = self._service.pieces.to_wire
        content = [{**wire(t.token, t.log_prob), "top_logprobs": [wire(*choice) for choice in t.top]} for t in tokens]
        has_log_probs = self._sent.logprobs and (tokens or finish_reason)
        log_probs = {"content": content, "refusal": None} if has_log_probs else None
        return {"index": index, "finish_reason": finish_reason, "logprobs": log_probs}

    def _judged(self, answer: Answer) -> Json:
        return of_answer(answer, self._service.loaded.readers.threshold)


# What is said about an answer in every reply.
_UNJUDGED = {
    **dict.fromkeys(("answer", "confidence", "psr", "per", "distance_percentile")),
    **{"methods": {}, "answer_sets": [], "claims": None, "threshold": None, "abstain": None, "notes": []},
}


def of_answer(answer: Answer, threshold: Threshold | None) -> Json:
    """Return what is said about an answer: all confidences are null where readers cannot judge it."""
    reading, decision = answer.reading, answer.decision
    said = {"psr": answer.psr} if reading is None else asdict(reading)
    kind = "answers" if reading is None or reading.claims is None else "claims"
    return _finite(
        {
            **{name: said.get(name, none) for name, none in _UNJUDGED.items()},
            "threshold": None if threshold is None else _threshold(threshold, decision, kind),
            "abstain": None if decision is None or decision.keep is None else not decision.keep,
            "notes": list(answer.notes),
        }
    )


def of_abstention(abstained: Abstained) -> Json:
    """Return what is said where no answer was made."""
    return {**_UNJUDGED, "psr": abstained.psr, "abstain": True, "notes": [refusal(abstained), *abstained.notes]}


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


def _threshold(threshold: Threshold, decision: Decision | None, kind: str) -> Json:
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
