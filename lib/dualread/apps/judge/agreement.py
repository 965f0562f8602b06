"""A table of answers whose correctness a language model judges, beside exact match: what is asked, and how both agree.

Each distinct (question, answer, reference answers) is asked once. An empty answer is wrong, and a row without a
reference answer is not judged; neither is asked.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dualread import plugins
from dualread.apps.ask.sending import RequestBatch
from dualread.data.tables.checks import checked
from dualread.data.tables.contract import ANSWERS, TableOptions
from dualread.data.tables.files import read_file
from dualread.errors import DataError
from dualread.grading.canonical import is_correct
from dualread.models.service.requests import ServiceRequest, judge_request
from dualread.models.service.responses import Found, read_responses
from dualread.schema.base import Wire

Case = tuple[str, str, tuple[str, ...]]  # a question, an answer, and its reference answers
EXACT, CORRECT = "correct_exact", "correct"


@dataclass(frozen=True, kw_only=True)
class JudgedAnswers:
    """What a grader says about a table."""

    # The table with `correct` as the grader says it, null where it says nothing, and `correct_exact`.
    table: pl.DataFrame
    # Each distinct case that both judge differently: question, answer, reference_answer, correct_exact, correct,
    # n_rows; those with most rows first.
    disagreements: pl.DataFrame
    lines: Sequence[str]  # sentences about the agreement


class AnswersToJudge:
    """The answers of a table, and what a grader is to be asked about them; `cases` has None where nothing is asked."""

    def __init__(self, file: Path, *, grader: str, model: str, body: Wire, alternatives: str | None = None) -> None:
        """Read a table with question, answer, reference_answer, as `dualread evaluate` reads it.

        `model` is the name by which the service knows the model; `body` is laid over the body of every request.
        `alternatives` separates accepted answers in one text of reference_answer; None for nothing.
        """
        self._grader = plugins.load("graders", grader)
        self._name, self._model, self._body = grader, model, body
        table = read_file(file)
        answers = checked(table, TableOptions(alternatives=alternatives).reading(ANSWERS), is_graded=False)
        for column in ("question", "answer", "reference_answer"):
            answers.need(column, "which a grader judges")
        self._frame = table.frame
        rows = answers.frame.select("question", "answer", "reference_answer").rows()
        self._references = [tuple(references or ()) for _, _, references in rows]
        if not any(self._references):
            raise DataError(f"{file}: no row has a reference answer, which a grader compares with. Add some.")
        self._answers = [answer for _, answer, _ in rows]
        self.cases: list[Case | None] = [
            (question, answer, references) if answer is not None and references else None
            for (question, answer, _), references in zip(rows, self._references, strict=True)
        ]

    def requests(self) -> Iterator[ServiceRequest]:
        """Yield one request per distinct case, in the order of the rows. Equal cases have equal ids in all tables."""
        for case in dict.fromkeys(case for case in self.cases if case is not None):
            text = self._grader.question(case[0], case[1], list(case[2]))
            name = f"{case[0]} {case[1]}"
            yield judge_request(self._name, text, name=name, model=self._model, body=self._body)

    def batch(self, folder: Path) -> RequestBatch:
        """Return the requests, and which of them are answered in `folder`."""
        return RequestBatch.of_judge(self.requests, read_responses(folder / "responses"))

    def judged(self, folder: Path) -> JudgedAnswers:
        """Return what the responses in `folder` say."""
        replies = Found(read_responses(folder / "responses")).replies(self.requests())
        texts = {request.custom_id: reply.choices[0].text for request, reply in replies}
        distinct = dict.fromkeys(case for case in self.cases if case is not None)
        verdicts = {
            case: self._grader.verdict(texts[request.custom_id]) if request.custom_id in texts else None
            for case, request in zip(distinct, self.requests(), strict=True)
        }
        exact = [
            is_correct(answer, references) if references else None
            for answer, references in zip(self._answers, self._references, strict=True)
        ]
        correct = [
            verdicts[case] if case is not None else (False if references else None)
            for case, references in zip(self.cases, self._references, strict=True)
        ]
        table = self._frame.drop(CORRECT, EXACT, strict=False).with_columns(
            pl.Series(CORRECT, correct, pl.Boolean), pl.Series(EXACT, exact, pl.Boolean)
        )
        return JudgedAnswers(table=table, disagreements=self._differing(verdicts), lines=[*_agreement(verdicts)])

    def _differing(self, verdicts: Mapping[Case, bool | None]) -> pl.DataFrame:
        n_rows = Counter(self.cases)
        rows = [
            {
                **dict(zip(("question", "answer"), case[:2], strict=True)),
                "reference_answer": case[2][0] if len(case[2]) == 1 else json.dumps(case[2], ensure_ascii=False),
                EXACT: is_correct(case[1], case[2]),
                CORRECT: verdict,
                "n_rows": n_rows[case],
            }
            for case, verdict in verdicts.items()
            if verdict is not None and verdict != is_correct(case[1], case[2])
        ]
        kinds = {**dict.fromkeys(("question", "answer", "reference_answer"), pl.String), EXACT: pl.Boolean}
        return pl.DataFrame(rows, schema={**kinds, CORRECT: pl.Boolean, "n_rows": pl.Int64}).sort(
            "n_rows", descending=True, maintain_order=True
        )


def _agreement(verdicts: Mapping[Case, bool | None]) -> Iterator[str]:
    """Yield how the grader and exact match agree about distinct cases, with Cohen's kappa."""
    both = [(is_correct(case[1], case[2]), verdict) for case, verdict in verdicts.items() if verdict is not None]
    unclear = len(verdicts) - len(both)
    if both:
        n = len(both)
        exact, judge = (sum(pair[k] for pair in both) / n for k in (0, 1))
        agree = sum(first == second for first, second in both) / n
        by_chance = exact * judge + (1 - exact) * (1 - judge)
        kappa = "undefined" if by_chance == 1 else f"{(agree - by_chance) / (1 - by_chance):.3f}"
        judged = f"{n} distinct answer{'' if n == 1 else 's'} judged"
        yield f"{judged}: right by exact match {exact:.1%}, right by the grader {judge:.1%}"
        yield f"both agree on {agree:.1%} of them (Cohen's kappa {kappa})"
        only = {(False, True): "right by the grader alone", (True, False): "right by exact match alone"}
        yield ", ".join(f"{both.count(kind)} are {words}" for kind, words in only.items())
    if unclear:
        verb = "is" if unclear == 1 else "are"
        counted = f"{unclear} of {len(verdicts)} distinct answers {verb} not judged"
        yield f"{counted}: no reply, or one that says neither yes nor no"
