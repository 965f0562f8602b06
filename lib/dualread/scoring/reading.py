"""What readers say about an actor's answers."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from dualread.errors import DualReadError, ReaderError, in_a_line
from dualread.models.replay.forward import VECTORS
from dualread.readers.answers import COLUMNS, Answers
from dualread.readers.base import FittedReader, Scores, score
from dualread.readers.requirements import requirements_of
from dualread.scoring.answering import Answered
from dualread.scoring.results import Confidence, Reading

# The roles under which a reader of both branches holds its parts.
_PSR, _PER = "pre", "post"


def readings(readers: Mapping[str, FittedReader], method: str, answered: Answered) -> list[Reading]:
    """Return what the readers say about each answer; the confidence is that of `method`.

    Raises:
        ReaderError: A reader does not fit the actor's states.
    """
    own = readers[method]
    scores = {name: _scores(name, reader, answered) for name, reader in readers.items()}
    parts = {role: _scores(role, own.parents[role], answered) for role in (_PSR, _PER) if role in own.parents}
    statuses = answered.answers.table["parse_status"].to_list()
    return [
        Reading(
            answer=answer,
            completion=completion.text,
            parse_status=statuses[i],
            finish_reason=completion.finish_reason,
            confidence=float(scores[method].confidence[i]),
            psr=float(parts[_PSR].confidence[i]) if _PSR in parts else None,
            per=float(parts[_PER].confidence[i]) if _PER in parts else None,
            methods={name: _confidence(of, i) for name, of in scores.items()},
        )
        for i, (answer, completion) in enumerate(zip(answered.texts, answered.completions, strict=True))
    ]


def check_widths(readers: Mapping[str, FittedReader], width: int) -> None:
    """Let each reader of states score one answer with states of `width` numbers, before any question is asked.

    Raises:
        ReaderError: A reader was fitted on states of another width.
    """
    table = pl.DataFrame([dict.fromkeys(COLUMNS, "")], schema=dict.fromkeys(COLUMNS, pl.String))
    states = {name: np.full((1, width), 0.5, np.float32) for name in VECTORS}
    states["answer_log_prob"] = np.full((1, 1), -0.5, np.float32)
    answers = Answers(table=table, source=states.__getitem__, rows=np.zeros(1, np.int64))
    for name, reader in readers.items():
        if reader.provenance.get("features") and not requirements_of(reader, where=name).views:
            _scored(name, reader, answers)


def _scores(name: str, reader: FittedReader, answered: Answered) -> Scores:
    views = tuple(answered.views[view.name] for view in requirements_of(reader, where=name).views)
    return _scored(name, reader, replace(answered.answers, views=views))


def _scored(name: str, reader: FittedReader, answers: Answers) -> Scores:
    try:
        return score(reader, answers)
    except DualReadError:
        raise
    except Exception as error:  # whatever the numbers and texts of a file from elsewhere make of it
        raise ReaderError(
            f"{name}: the reader's weights do not fit the states of this actor ({in_a_line(error)}). Expected the actor"
            " on whose answers it was fitted."
        ) from error


def _confidence(scores: Scores, i: int) -> Confidence:
    return Confidence(
        confidence=float(scores.confidence[i]), score=float(scores.score[i]), imputed=bool(scores.imputed[i])
    )
