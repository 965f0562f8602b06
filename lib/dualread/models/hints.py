"""Misleading hints: a wrong answer to each question, for a prompt with `{HINT}`.

The hint is a reference answer to another question of the split: to the same question about another image, where there
is one, or else to a question of the same answer type, or to any. Of a multiple-choice question it is another of its
options. Nothing else of the reference answers reaches a model.
"""

import hashlib

import polars as pl

from dualread.errors import ArtifactError
from dualread.grading.canonical import canonical, is_correct


def misleading(manifest: pl.DataFrame) -> dict[str, str]:
    """Return a wrong answer to each question, by sample_id.

    Among several it is the one with the smallest sha256 of "sample_id | answer", so that nothing is drawn.
    """
    rows = manifest.select("sample_id", "question_key", "answer_type", "options", "reference_answers").sort("sample_id")
    of_key, of_type, of_all = (_answers(rows, by) for by in ("question_key", "answer_type", None))
    hints = {}
    for sample_id, key, kind, options, references in rows.iter_rows():
        for candidates in [options] if options else [of_key[key], of_type[kind], of_all[None]]:
            if wrong := [answer for answer in candidates if canonical(answer) and not is_correct(answer, references)]:
                digests = {hashlib.sha256(f"{sample_id} | {answer}".encode()).hexdigest(): answer for answer in wrong}
                hints[sample_id] = digests[min(digests)]
                break
    if missing := [sample_id for sample_id in rows["sample_id"] if sample_id not in hints]:
        raise ArtifactError(
            f"misleading hints: {len(missing)} questions have no wrong answer among those of their split, such as"
            f" {missing[0]}. Leave the condition out for this split (`splits`, `datasets`)."
        )
    return hints


def _answers(rows: pl.DataFrame, column: str | None) -> dict[str | None, list[str]]:
    """Return the first reference answers to the questions of each group, one of each canonical form."""
    groups: dict[str | None, dict[str, str]] = {}
    names = rows[column] if column else [None] * len(rows)
    for group, references in zip(names, rows["reference_answers"].to_list(), strict=True):
        for answer in references[:1]:
            groups.setdefault(group, {}).setdefault(canonical(answer), answer)
    return {group: list(answers.values()) for group, answers in groups.items()}
