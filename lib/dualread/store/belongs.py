"""Whether the inputs of an artifact are of the run, the method and the answers that it is about.

Rules give inputs by path, and a wrong path would give a number of something else. What an artifact is of stands in the
spec in its MANIFEST.json. So the runner compares it before anything is computed, and stages do not look again.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dualread.errors import ArtifactError


@dataclass(frozen=True, kw_only=True)
class RunIdentity:
    """What an artifact is of, as far as its spec says it."""

    run: Mapping[str, Any]  # backbone, actor, and seed
    checkpoint: str | None  # the actor whose checkpoint answers, if it is another one
    compared: str | None  # the actor with whose answers those of the run are compared, if there is one
    shard: Mapping[str, str]  # data set, split, and condition; of what is fitted, those that it is fitted on
    reader: Mapping[str, Any]  # a method, the module of its reader, and by role the methods that it builds on
    # Conditions whose completions it may be about: its own, that of which it is a view, or one that it forces
    about: frozenset[str]
    transfer: Mapping[str, Any]  # the method, actor and seed of the reader that it applies, if it applies another one's
    is_fitted: bool  # whether it is fitted or trained on its shard, and may be used for any other

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> "RunIdentity":
        """Return what an artifact with this spec is of."""
        asked = {**spec, **spec.get("examples", {}), **spec.get("shard", {})}
        shard = {name: asked[name] for name in ("dataset", "split", "condition") if name in asked}
        if "actor" in spec and shard:
            shard = {"condition": "original", **shard}  # what is about answers and names no condition is about these
        # Without an actor, a seed is that of something else.
        run = ("backbone", "actor", "seed") if "actor" in spec else ("backbone",)
        about = {shard.get("condition", "").partition("/")[0], asked.get("completions")}
        return cls(
            run={name: spec[name] for name in run if name in spec},
            checkpoint=spec.get("same_as"),
            compared=spec.get("metrics", {}).get("changed_from"),
            shard=shard,
            reader=spec.get("reader") or {name: spec[name] for name in ("method",) if name in spec},
            about=frozenset(filter(None, about)),
            transfer=spec.get("transfer") or {},
            is_fitted="examples" in spec,
        )

    def words(self) -> Counter[str]:
        """Return everything that it is of, as names of inputs have it; an actor and a method may have the same name."""
        named = [*self.run.values(), *self.shard.values(), self.reader.get("method", "")]
        return Counter(word for value in named for word in str(value).split("/") if word)


def check_identities(made: RunIdentity, inputs: Mapping[str, RunIdentity | None], where: str) -> None:
    """Refuse inputs that are of something else than `made`; `where` is what errors call it, None stands for raw data.

    The words after the first one of an input's name say what it is: "graded/slake/test/original", "parent/state".
    """
    for name, identity in inputs.items():
        for difference in _differences(made, *name.split("/"), identity=identity) if identity else ():
            raise ArtifactError(f"{where}: its input {name} is of {difference}. Give the path of that one.")


def _differences(made: RunIdentity, kind: str, *words: str, identity: RunIdentity) -> Iterator[str]:
    """Yield what an input is of, and what is expected in its place; `kind` and `words` are the parts of its name."""
    if kind == "reader" and made.transfer:
        yield from _unequal({**identity.run, **identity.reader}, {**made.run, **made.reader, **made.transfer})
        return
    expected = {**made.run}
    if kind == "actor" and made.checkpoint:
        expected["actor"] = made.checkpoint
    elif kind == "compared":  # perhaps of another seed
        expected = {"backbone": made.run["backbone"], "actor": made.compared}
    yield from _unequal(identity.run, expected)
    if kind == "parent":
        yield from _unequal({"reader": identity.reader}, {"reader": made.reader["parents"].get(words[0])})
        # It may be fitted on another split: a map of confidences on validation answers, what it maps on training ones.
        yield from _unequal(identity.shard, {what: it for what, it in made.shard.items() if what != "split"})
        return
    yield from _unequal(identity.reader, made.reader)
    if not identity.is_fitted and (not words or kind == "view"):
        yield from _unequal(identity.shard, {what: it for what, it in made.shard.items() if what != "condition"})
        condition, _, view = identity.shard.get("condition", "").partition("/")
        if made.about and condition and (condition not in made.about or (view and kind != "view")):
            yield f"condition {identity.shard['condition']!r}, expected {' or '.join(sorted(made.about))}"
    named = identity.words()
    if named and (strange := Counter(words) - named):
        yield f"{', '.join(sorted(named.elements()))}, where its name says {min(strange)}"


def _unequal(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[str]:
    for what in actual:
        if what in expected and actual[what] != expected[what]:
            yield f"{what} {actual[what]!r}, expected {expected[what]!r}"
