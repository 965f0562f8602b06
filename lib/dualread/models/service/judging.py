"""What a grader asks a language model behind a service: one text per request, without an image."""

import hashlib
import json
from typing import Any

from dualread.models.conditions import Asked
from dualread.models.meaning import LONGEST_REPLY
from dualread.models.service.requests import ServiceRequest
from dualread.schema.base import Wire


def judge_request(grader: str, text: str, *, name: str, model: str, body: Wire) -> ServiceRequest:
    """Return the request with `text`; equal texts to equal models have equal ids, whatever asks them.

    Args:
        grader: The plugin that wrote the text, and reads the reply.
        text: What is asked.
        name: What errors call it.
        model: The name by which the service knows the model.
        body: What is laid over the body of the request.
    """
    body = {"model": model, "temperature": 0.0, "max_completion_tokens": LONGEST_REPLY} | dict(body)
    asked = {"grader": grader, "text": text, "body": body}
    custom_id = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    question = Asked(sample_id=name, text=text, image_files=(), image_id="")
    return ServiceRequest(custom_id=custom_id, question=question, first=0, n=1, log_probs=False, body=body)


def judge_body(request: ServiceRequest) -> dict[str, Any]:
    """Return the body of the call."""
    return {**request.body, "messages": [{"role": "user", "content": request.question.text}]}
