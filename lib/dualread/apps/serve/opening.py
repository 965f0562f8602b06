"""Open readers and their actor for a service."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

from dualread.apps.score import stored
from dualread.apps.score.loading import LoadedScorer, Opens, ScorerChoice, load
from dualread.apps.serve.actor import ServingActor
from dualread.apps.serve.check import check
from dualread.apps.serve.on_transformers import OnTransformers
from dualread.apps.serve.service import AnsweringService
from dualread.errors import ConfigError
from dualread.evaluation.thresholds import Threshold, deciding
from dualread.progress import say
from dualread.readers.base import FittedReader
from dualread.readers.requirements import views_read

_PSR, _THRESHOLD = "psr", "threshold"


def open_service(
    choice: ScorerChoice,
    *,
    batch_size: int,
    most_images: int = 8,
    engine: str | None = None,
    abstain_before: str | None = None,
    unchecked: bool = False,
) -> AnsweringService:
    """Open a service.

    Args:
        choice: Which reader, actor, threshold and prompt; errors about it are those of `Scorer.load`.
        batch_size: Number of answers that are made at once.
        most_images: Largest number of images in a request.
        engine: "vllm" or "transformers"; None for vLLM where it is installed.
        abstain_before: PSR below which no answer is made: a number, or "threshold" for that of the method psr which
            travels with the reader; None to make all answers.
        unchecked: Whether to serve with vLLM although nothing travels with the reader by which it can be checked.

    Raises:
        ConfigError: There is no such limit of PSR, or the engine does not show what a reader reads.
        ArtifactError: The engine does not read what was read when the reader was exported.
    """
    engine = engine or ("vllm" if find_spec("vllm") else "transformers")
    number = None if abstain_before in (None, _THRESHOLD) else _number(abstain_before)
    loaded = load(choice, _opens(engine, batch_size, most_images))
    loaded = _checked(loaded, engine, unchecked)
    if abstain_before == _THRESHOLD:
        of_psr = [threshold for threshold in loaded.thresholds if threshold.method == _PSR]
        number = _value(deciding(of_psr, choice.target_risk_percent, certified=choice.certified))
    return AnsweringService(loaded, abstain_below=number)


def _checked(loaded: LoadedScorer[ServingActor], engine: str, unchecked: bool) -> LoadedScorer[ServingActor]:
    """Check that the engine reads what was read when the bundle was written; say in every reply if nobody knows."""
    if engine == "vllm":
        from dualread.apps.serve.on_vllm import OnVllm

        assert isinstance(loaded.actor, OnVllm)
        loaded.actor.read_only(
            {feature for name, reader in loaded.readers.items() for feature in _features(name, reader)}
        )
    if answers := [] if loaded.bundle is None else stored.read(loaded.bundle):
        say(f"dualread serve: {check(loaded, answers)}")
    elif engine == "vllm":
        if not unchecked:
            raise ConfigError(
                "no stored answers travel with this reader, by which vLLM could be checked. Serve a bundle that this"
                " version exported with --with-checkpoint, or with --engine transformers; or say --unchecked, and every"
                " reply will."
            )
        return replace(loaded, notes=(*loaded.notes, "it was not checked that vLLM reads states as this reader needs"))
    return loaded


def _features(name: str, reader: FittedReader) -> Sequence[str]:
    """Return what a reader reads, if vLLM shows it."""
    from dualread.apps.serve.vllm_process import FEATURES

    features: Sequence[str] = reader.provenance.get("features") or ()
    if views_read(reader, where=name):
        why = "asks the actor more about each answer"
    elif missing := sorted(set(features) - set(FEATURES)):
        why = f"reads {', '.join(missing)}, which vLLM does not show"
    else:
        return features
    raise ConfigError(f"the method {name} {why}. Leave it out (--methods), or serve with --engine transformers.")


def _opens(engine: str, batch_size: int, most_images: int) -> Opens[ServingActor]:
    if engine == "transformers":
        return partial(OnTransformers, batch_size=batch_size)
    from dualread.apps.serve.on_vllm import OnVllm

    return partial(OnVllm, max_num_seqs=batch_size, most_images=most_images)


def _value(threshold: Threshold | None) -> float:
    if threshold is not None and threshold.value is not None:
        return threshold.value
    why = "no threshold of the method psr travels with the reader" if threshold is None else threshold.reason
    raise ConfigError(
        f"--abstain-before threshold: {why}. Give a number from 0 to 1, or a bundle that was exported with `--methods"
        " psr`."
    )


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ConfigError(f"--abstain-before {text}: expected a number from 0 to 1, or `{_THRESHOLD}`.")
    return number
