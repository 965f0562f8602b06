"""Before the first request: does this engine read what was read when the bundle was written?

Engines differ by the rounding of their dtype. One that reads an image in another way (vLLM's build for CPUs does with
Gemma 3) differs by far more, and gives wrong confidences without an error.
"""

from collections.abc import Sequence

import numpy as np

from dualread.apps.score.answering import scores_of
from dualread.apps.score.loading import LoadedScorer
from dualread.apps.score.stored import StoredAnswer
from dualread.apps.serve.actor import ServingActor
from dualread.apps.serve.chat_questions import ActorRequest, RequestReader, SentImage, Turn, Wanted
from dualread.data.images import Decoded
from dualread.errors import ArtifactError
from dualread.models.actor import BrokenRequest, Finished

# By how much states and confidences may differ by dtype: states in shares of their length.
ROUNDING = {"float32": (1e-3, 1e-3), "bfloat16": (0.1, 0.1)}


def check(loaded: LoadedScorer[ServingActor], stored: Sequence[StoredAnswer]) -> str:
    """Answer the stored questions again; return a sentence on how well the numbers agree.

    Raises:
        ArtifactError: States or confidences differ by more than rounding, or so many answers differ that this cannot be
            known.
    """
    dtype, requests = str(loaded.requirements.model["dtype"]), RequestReader(loaded)
    allowed = ROUNDING[dtype]
    ended = _answered(loaded.actor, requests, stored)
    same = [k for k, answer in enumerate(stored) if list(ended[k].completion.token_ids) == list(answer.token_ids)]
    least = len(stored) if dtype == "float32" else (len(stored) + 1) // 2
    if len(same) < least:
        raise _other(f"{len(stored) - len(same)} of {len(stored)} answers are other ones")
    asked = [_asked(requests, stored[k], str(k)) for k in same]
    answered = loaded.actor.read(asked, [ended[k] for k in same], loaded.views)
    confidences = scores_of(loaded.method, loaded.readers[loaded.method], answered).confidence.tolist()
    worst = 0.0
    for name in sorted(
        {name for reader in loaded.readers.values() for name in reader.provenance.get("features") or ()}
    ):
        for k, now in zip(same, answered.answers.features(name), strict=True):
            before = stored[k].states[name]
            apart = float(np.linalg.norm(now - before) / max(float(np.linalg.norm(before)), 1e-6))
            worst = max(worst, apart)
            if not apart <= allowed[0]:
                raise _other(f"{name} of {stored[k].question!r} is {apart:.1%} of its length apart")
    apart = max(abs(confidence - stored[k].confidence) for k, confidence in zip(same, confidences, strict=True))
    if not apart <= allowed[1]:
        raise _other(f"confidences are up to {apart:.4f} apart")
    return (
        f"{len(same)} of {len(stored)} stored answers are the same; their states differ by at most {worst:.1e} of their"
        f" length, their confidences by {apart:.1e}"
    )


def _answered(actor: ServingActor, requests: RequestReader, stored: Sequence[StoredAnswer]) -> list[Finished]:
    for k, answer in enumerate(stored):
        actor.add(_asked(requests, answer, str(k)).encoded(str(k)))
    finished: dict[str, Finished] = {}
    while len(finished) < len(stored):
        for event in actor.step():
            if isinstance(event, BrokenRequest):
                raise _other(f"an answer fails ({event.error})")
            if isinstance(event, Finished):
                finished[event.name] = event
    return [finished[str(k)] for k in range(len(stored))]


def _asked(requests: RequestReader, answer: StoredAnswer, name: str) -> ActorRequest:
    decoded = Decoded(image=answer.image)
    turn = Turn(role="user", parts=(SentImage(decoded=decoded, read_again=lambda: decoded), answer.question))
    return requests.read([turn], Wanted(), name)


def _other(what: str) -> ArtifactError:
    return ArtifactError(
        f"this engine does not read what was read when the bundle was written: {what}, more than rounding explains."
        " Confidences would be wrong without notice. Serve with another one (--engine transformers), or on other"
        " hardware."
    )
