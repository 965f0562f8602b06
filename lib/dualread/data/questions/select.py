"""Draw the questions of a data set that a study asks, by a rule that anybody can repeat.

Rows are sorted by sha256(seed, official id), so the draw depends neither on the order of the file nor on a random
number generator. They are taken in this order, except those whose answer type or picture already has enough questions.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dualread.data.datasets.base import AuditStep, Loaded, Row
from dualread.errors import refuse
from dualread.schema.data import Select

_ANY = "questions"  # stands for both answer types if the rule does not distinguish them


def select(loaded: Loaded, rule: Select, seed: int, picture_of: Callable[[Row], str]) -> Loaded:
    """Return `loaded` with only the rows that `rule` selects, in the order of the official file, and a longer audit.

    Of `questions` per answer type, a type that is not named gets none. Without `questions`, as many rows are drawn as
    `max_per_image` allows. `picture_of`, which decodes images, returns the identity of a row's picture; it is called
    only if `max_per_image` is set, and only for rows that would be taken otherwise. Too few questions are refused.
    """
    rows, steps = loaded.rows, []
    if rule.answer_types is not None:
        rows = [row for row in rows if row.answer_type in rule.answer_types]
        reason = f"the answer type is {' or '.join(rule.answer_types)}"
        steps = [_step("answer types", len(rows), len(loaded.rows) - len(rows), reason)]
    if rule.questions is not None or rule.max_per_image is not None:
        kinds = [row.answer_type if isinstance(rule.questions, Mapping) else _ANY for row in rows]
        wanted = len(rows) if rule.questions is None else rule.questions
        quota = {**wanted} if isinstance(wanted, Mapping) else {_ANY: wanted}
        taken, passed = _draw(rows, kinds, quota, rule.max_per_image, seed, picture_of)
        if rule.questions is not None:
            refuse(_shortages(loaded.file, rule, kinds, quota, taken))
        steps += _account(rule, seed, kinds, quota, len(taken), passed)
        rows = [rows[i] for i in sorted(taken)]
    return replace(loaded, rows=rows, audit=[*loaded.audit, *steps])


def _draw(
    rows: Sequence[Row],
    kinds: Sequence[str],
    quota: Mapping[str, int],
    most: int | None,
    seed: int,
    picture_of: Callable[[Row], str],
) -> tuple[list[int], int]:
    """Return the indices of the drawn rows, and how many rows were skipped because their picture had enough."""
    order = sorted(range(len(rows)), key=lambda i: hashlib.sha256(f"{seed}\x1f{rows[i].official_id}".encode()).digest())
    remaining, on_picture, taken, passed = Counter(quota), Counter(), [], 0
    for i in order:
        if not remaining[kinds[i]]:
            continue
        if most is not None:
            picture = picture_of(rows[i])
            if on_picture[picture] == most:
                passed += 1
                continue
            on_picture[picture] += 1
        remaining[kinds[i]] -= 1
        taken.append(i)
    return taken, passed


def _shortages(
    file: Path, rule: Select, kinds: Sequence[str], quota: Mapping[str, int], taken: Sequence[int]
) -> Iterator[str]:
    there, drawn = Counter(kinds), Counter(kinds[i] for i in taken)
    for kind, wanted in quota.items():
        if drawn[kind] < wanted:
            where = "select.questions" if kind == _ANY else f"select.questions.{kind}"
            full = f"{there[kind] - drawn[kind]} more are on pictures that already have {rule.max_per_image}"
            rest = full if rule.max_per_image is not None else "there are no more"
            yield f"{file}: {where}: {wanted} rows asked for, {drawn[kind]} found; {rest}. Ask for fewer."


def _account(
    rule: Select, seed: int, kinds: Sequence[str], quota: Mapping[str, int], n_taken: int, passed: int
) -> list[AuditStep]:
    order = f"in the order of sha256(seed {seed}, official id)"
    steps = []
    if rule.max_per_image is not None:
        reason = f"at most {rule.max_per_image} questions per picture, {order}; the others were skipped"
        steps.append(_step("questions per picture", len(kinds) - passed, passed, reason))
    if rule.questions is not None:
        there = Counter(kinds)
        counts = ", ".join(f"{wanted} of {there[kind]} {kind}" for kind, wanted in quota.items())
        steps.append(_step("draw", n_taken, len(kinds) - passed - n_taken, f"{counts}, {order}"))
    return steps


def _step(step: str, kept: int, dropped: int, reason: str) -> AuditStep:
    return AuditStep(step=step, kept=kept, dropped=dropped, reason=reason)
