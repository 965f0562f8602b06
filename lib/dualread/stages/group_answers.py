"""Stage group_answers: an actor's answers to each question of a shard -> which of them mean the same, as a model says.

Inputs: `manifest`, `graded`; `view/<name>` per view of completions; `source`, the folder of the model, unless it is on
the hub. Answers of equal canonical form are the same, so that pairs of others alone are compared.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path

from dualread.artifacts.tables import from_rows, read_table, write_table
from dualread.artifacts.tensors import lazy_tensors
from dualread.models.meaning import CLASSES, embeddings, entailments
from dualread.readers.groups import canonical_samples
from dualread.readers.join import OF_GRADED, OF_MANIFEST, committed, join_answers
from dualread.schema.columns import GRADED, GROUPS, MANIFEST
from dualread.schema.groups import GroupAnswersSpec, Groups
from dualread.stages._views import read_views

Pair = tuple[str, str]


def compute(spec: GroupAnswersSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write groups.parquet, sorted by sample_id and answers."""
    from dualread.models.backbones.checkpoint import download

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
        before = f"{questions[sample_id]} " if questions else ""
        rows += [(sample_id, *pair, (before + pair[0], before + pair[1])) for pair in combinations(distinct, 2)]
    compared = sorted({pair for *_, pair in rows})
    folder = inputs.get("source") or download(str(groups.source.hub), groups.source.revision)
    judged = dict(zip(compared, _judged(compared, folder, groups), strict=True)) if compared else {}
    values = [(sample_id, *answers_of_pair, *judged[pair]) for sample_id, *answers_of_pair, pair in rows]
    table = from_rows([dict(zip(GROUPS.columns, row, strict=True)) for row in values], GROUPS)
    write_table(out / "groups.parquet", table, GROUPS)
    same = f"{table['same'].sum()} of {len(table)} are the same"
    return f"read {len(answers)} answers, compared {len(compared)} pairs; {same}"


def _judged(pairs: Sequence[Pair], folder: Path, groups: Groups) -> list[tuple[float, bool]]:
    """Return the similarity of each pair, and whether it means the same."""
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
