"""Stage group_answers: an actor's answers to each question of a shard -> which of them mean the same, as a model says.

Inputs: `manifest`, `graded`; `view/<name>` per view of completions; `responses` of a service, or else `source`, the
folder of the model, unless it is on the hub. Answers of equal canonical form are the same, so that pairs of others
alone are compared. Where a judge's reply in either order says neither yes nor no, the pair has no verdict.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from dualread import plugins
from dualread.artifacts.tables import from_rows, read_table, write_table
from dualread.artifacts.tensors import lazy_tensors
from dualread.models.meaning import CLASSES, embeddings, entailments, greedy_replies
from dualread.models.service.requests import ServiceRequest, judge_request
from dualread.models.service.responses import Found, read_responses
from dualread.readers.answers import OF_GRADED, OF_MANIFEST, committed, join_answers
from dualread.readers.groups import canonical_samples
from dualread.schema.columns import GRADED, GROUPS, MANIFEST
from dualread.schema.groups import GroupAnswersSpec, Groups
from dualread.stages._views import read_views

Pair = tuple[str, str, str]  # a question, or nothing where it does not count, and two answers to it
Meaning = tuple[float | None, bool | None]  # their similarity, and whether they mean the same


def compute(spec: GroupAnswersSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write groups.parquet, sorted by sample_id and answers."""
    rows = compared_answers(spec, inputs)
    pairs = sorted({pair for _, pair in rows})
    meanings = dict(zip(pairs, _meanings(spec, pairs, inputs), strict=True)) if pairs else {}
    values = [(sample_id, *pair[1:], *meanings[pair]) for sample_id, pair in rows]
    table = from_rows([dict(zip(GROUPS.columns, row, strict=True)) for row in values], GROUPS)
    write_table(out / "groups.parquet", table, GROUPS)
    same, n_unclear = f"{table['same'].sum()} of {len(table)} are the same", table["same"].null_count()
    unclear = f", {n_unclear} have no verdict (a reply says neither yes nor no)" if n_unclear else ""
    return f"compared {len(pairs)} distinct pairs of answers; {same}{unclear}"


def compared_answers(spec: GroupAnswersSpec, inputs: Mapping[str, Path]) -> list[tuple[str, Pair]]:
    """Return each two different canonical answers to a question, the committed one among them, with its sample_id."""
    groups, where = spec.groups, f"{spec.dataset}/{spec.split}/{spec.condition}"
    manifest = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST, (*OF_MANIFEST, "question"))
    graded = committed(read_table(inputs["graded"] / "graded.parquet", GRADED, OF_GRADED))
    answers = join_answers(manifest, graded, None, lazy_tensors(Path()), where=where)
    views = read_views(groups.of, {name: inputs[f"view/{name}"] for name in groups.of}, answers, where=where)
    questions = dict(manifest.select("sample_id", "question").iter_rows()) if groups.with_question else {}
    sampled = zip(*map(canonical_samples, views), strict=True)
    rows = []
    committed_answers = graded.select("sample_id", "canonical_answer").iter_rows()
    for (sample_id, answer), texts in zip(committed_answers, sampled, strict=True):
        distinct = sorted({text for text in (answer, *chain(*texts)) if text is not None})
        rows += [(sample_id, (questions.get(sample_id, ""), *both)) for both in combinations(distinct, 2)]
    return rows


def judge_requests(spec: GroupAnswersSpec, pairs: Sequence[Pair]) -> Iterator[ServiceRequest]:
    """Yield what a service is asked about `pairs`: each in its order, then each in the other one."""
    service, grader = spec.groups.service, str(spec.groups.grader)
    assert service is not None, "the judge is a service"
    for (question, *both), text in zip([*pairs, *pairs], _judge_texts(spec, pairs), strict=True):
        name = f"{question} {' / '.join(both)}"
        yield judge_request(grader, text, name=name, model=service.model, body=service.body)


def _meanings(spec: GroupAnswersSpec, pairs: Sequence[Pair], inputs: Mapping[str, Path]) -> Iterable[Meaning]:
    from dualread.models.backbones.checkpoint import download

    groups = spec.groups
    if groups.source is None:
        replied = Found(read_responses(inputs["responses"]))
        replies = [reply.choices[0].text for _, reply in replied.replies(judge_requests(spec, pairs))]
        replied.refuse_missing(f"{spec.dataset}/{spec.split}/{spec.condition}")
        return _verdicts(spec, replies)
    folder = inputs.get("source") or download(str(groups.source.hub), groups.source.revision)
    if spec.grader is not None:
        return _verdicts(spec, greedy_replies(folder, _judge_texts(spec, pairs)))
    before = (f"{question} " if question else "" for question, *_ in pairs)
    return _compared([(start + a, start + b) for start, (_, a, b) in zip(before, pairs, strict=True)], folder, groups)


def _judge_texts(spec: GroupAnswersSpec, pairs: Sequence[Pair]) -> list[str]:
    ask, swapped = _grader(spec).question, ((question, b, a) for question, a, b in pairs)
    return [ask(question, second, [first]) for question, first, second in chain(pairs, swapped)]


def _verdicts(spec: GroupAnswersSpec, replies: Sequence[str]) -> Iterator[Meaning]:
    """Yield what the replies to `_judge_texts` say of each pair."""
    verdicts = list(map(_grader(spec).verdict, replies))
    for both in zip(verdicts[: len(verdicts) // 2], verdicts[len(verdicts) // 2 :], strict=True):
        yield (None, None) if None in both else (sum(both) / 2, all(both))


def _grader(spec: GroupAnswersSpec) -> Any:
    assert spec.grader is not None, "a judge has a grader"
    return plugins.load_module(spec.grader.module)


def _compared(pairs: Sequence[tuple[str, str]], folder: Path, groups: Groups) -> list[Meaning]:
    """Return what a classifier or an encoder says of each pair of texts."""
    if groups.threshold is not None:
        texts = sorted(set(chain(*pairs)))
        vectors = dict(zip(texts, embeddings(folder, texts), strict=True))
        # Rounded, so that no digit depends on which texts share a batch.
        cosines = [round(float(vectors[first] @ vectors[second]), 5) for first, second in pairs]
        return [(cosine, cosine >= groups.threshold) for cosine in cosines]
    classes = entailments(folder, [*pairs, *((second, first) for first, second in pairs)])
    least = 0.75 if groups.neutral else 1.0  # of entailed and neutral, and of entailed twice
    directions = zip(classes[: len(pairs)], classes[len(pairs) :], strict=True)
    means = [(CLASSES[there] + CLASSES[back]) / 2 for there, back in directions]
    return [(mean, mean >= least) for mean in means]
