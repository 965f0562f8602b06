"""Open readers and their actor for a service, and check that the engine reads what was read when they were exported.

Engines differ by the rounding of their dtype. One that reads an image in another way (vLLM's build for CPUs does with
Gemma 3) differs by far more, and gives wrong confidences without an error.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import numpy as np

from dualread.apps.score import ScorerChoice, stored
from dualread.apps.score.loading import ChosenReaders, LoadedScorer, Opens
from dualread.apps.score.readings import scores_of
from dualread.apps.score.stored import StoredAnswer
from dualread.apps.serve.actors import OnTransformers, OnVllm, ServingActor
from dualread.apps.serve.chat_questions import RequestReader
from dualread.apps.serve.service import AnsweringService
from dualread.apps.serve.vectors import FINAL
from dualread.apps.serve.wire import ChatRequest, SentImage, Turn
from dualread.data.images import Decoded
from dualread.errors import ArtifactError, ConfigError
from dualread.evaluation.thresholds import Threshold
from dualread.models.streams import BrokenRequest, Finished
from dualread.progress import say
from dualread.readers.requirements import ScoringReader

_THRESHOLD = "threshold"
# By how much states and confidences may differ by dtype: states in shares of their length.
ROUNDING = {"float32": (1e-3, 1e-3), "bfloat16": (0.1, 0.1)}


def open_service(
    choice: ScorerChoice,
    *,
    batch_size: int,
    most_images: int = 8,
    engine: str | None = None,
    abstain_before: str | None = None,
    unchecked: bool = False,
) -> AnsweringService:
    """Open a service of `engine`, "vllm" or "transformers"; None for vLLM where it is installed.

    It makes `batch_size` answers at once, of up to `most_images` each, and none where PSR is below `abstain_before`: a
    number, or "threshold" for that of the method psr which travels with the reader. With `unchecked`, vLLM serves
    although nothing travels with the reader by which it can be checked.

    Raises:
        ConfigError: There is no such limit of PSR, the engine does not show what a reader reads; or as `Scorer.load`.
        ArtifactError: The engine does not read what was read when the reader was exported; or as `Scorer.load`.
    """
    engine = engine or ("vllm" if find_spec("vllm") else "transformers")
    limit = None if abstain_before in (None, _THRESHOLD) else _probability(abstain_before)
    chosen = ChosenReaders.load(choice)
    if abstain_before is not None and chosen.needs.divider is not None:
        raise ConfigError(
            f"--abstain-before {abstain_before}: the reader judges claims, and has no PSR of a report before it is"
            " written. Leave it out."
        )
    if abstain_before == _THRESHOLD:
        limit = _threshold_of_psr(chosen.psr_threshold)
    opens: Opens[ServingActor] = partial(OnTransformers, batch_size=batch_size)
    if engine == "vllm":
        _check_shown(chosen.by_method.values())
        opens = partial(OnVllm, max_num_seqs=batch_size, most_images=most_images)
    answers = stored.read(chosen.files.stored()) if chosen.files.stored else []
    if engine == "vllm" and not answers and not unchecked:
        raise ConfigError(
            "no stored answers travel with this reader, by which vLLM could be checked. Serve a bundle that this"
            " version exported with --with-checkpoint, or with --engine transformers; or say --unchecked, and every"
            " reply will."
        )
    loaded: LoadedScorer[ServingActor] = chosen.with_actor(opens)
    if answers:
        say(f"dualread serve: {check(loaded, answers)}")
    elif engine == "vllm":
        note = "it was not checked that vLLM reads states as this reader needs"
        loaded = replace(loaded, notes=(*loaded.notes, note))
    return AnsweringService(loaded, abstain_below=limit)


def _probability(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (limit := float(text)) <= 1:
            return limit
    raise ConfigError(f"--abstain-before {text}: expected a number from 0 to 1, or `{_THRESHOLD}`.")


def _threshold_of_psr(threshold: Threshold | None) -> float:
    if threshold is not None and threshold.value is not None:
        return threshold.value
    why = "no threshold of the method psr travels with the reader" if threshold is None else threshold.reason
    raise ConfigError(
        f"--abstain-before {_THRESHOLD}: {why}. Give a number from 0 to 1, or a bundle that was exported with"
        " `--methods psr`."
    )


def _check_shown(readers: Iterable[ScoringReader]) -> None:
    """Refuse a reader that reads what vLLM does not show."""
    for reader in readers:
        if reader.views:
            why = "asks the actor more about each answer"
        elif missing := sorted(reader.features - set(FINAL)):
            why = f"reads {', '.join(missing)}, which vLLM does not show"
        else:
            continue
        raise ConfigError(
            f"the method {reader.method} {why}. Leave it out (--methods), or serve with --engine transformers."
        )


def check(loaded: LoadedScorer[ServingActor], answers: Sequence[StoredAnswer]) -> str:
    """Answer the stored questions again; return a sentence on how well the numbers agree.

    An ArtifactError says that states or confidences differ by more than rounding, or that so many answers differ that
    this cannot be known.
    """
    dtype, requests, actor = str(loaded.needs.requirements.model["dtype"]), RequestReader(loaded), loaded.actor
    of_states, of_confidences = ROUNDING[dtype]
    asked, nothing_else = [], ChatRequest.model_construct()
    for k, answer in enumerate(answers):
        decoded = [Decoded(image=image) for image in answer.images]
        images = [SentImage(decoded=image, read_again=lambda image=image: image) for image in decoded]
        asked.append(requests.read([Turn(role="user", parts=(*images, answer.question))], nothing_else, str(k)))
    for request in asked:
        actor.add(request.encoded)
    finished: dict[int, Finished] = {}
    while len(finished) < len(answers):
        for event in actor.step():
            if isinstance(event, BrokenRequest):
                raise _other(f"an answer fails ({event.error})")
            if isinstance(event, Finished):
                finished[int(event.name)] = event
    same = [k for k, answer in enumerate(answers) if list(finished[k].completion.token_ids) == list(answer.token_ids)]
    if len(same) < (len(answers) if dtype == "float32" else (len(answers) + 1) // 2):
        raise _other(f"{len(answers) - len(same)} of {len(answers)} answers are other ones")
    answered = actor.read([asked[k] for k in same], [finished[k] for k in same])
    confidences = scores_of(loaded.readers.confidence_reader, answered).confidence.tolist()
    stored_before = [confidence for k in same for confidence in answers[k].confidences]
    worst = 0.0
    for name in sorted(loaded.needs.features):
        of_rows = [(answers[k].question, state) for k in same for state in answers[k].states[name]]
        for (question, before), now in zip(of_rows, answered.answers.features(name), strict=True):
            apart = float(np.linalg.norm(now - before) / max(float(np.linalg.norm(before)), 1e-6))
            worst = max(worst, apart)
            if not apart <= of_states:
                raise _other(f"{name} of {question!r} is {apart:.1%} of its length apart")
    differences = [abs(before - now) for before, now in zip(stored_before, confidences, strict=True)]
    if not (apart := max(differences, default=0.0)) <= of_confidences:
        raise _other(f"confidences are up to {apart:.4f} apart")
    return (
        f"{len(same)} of {len(answers)} stored answers are the same; their states differ by at most {worst:.1e} of"
        f" their length, their confidences by {apart:.1e}"
    )


def _other(what: str) -> ArtifactError:
    return ArtifactError(
        f"this engine does not read what was read when the bundle was written: {what}, more than rounding explains."
        " Confidences would be wrong without notice. Serve with another one (--engine transformers), or on other"
        " hardware."
    )
