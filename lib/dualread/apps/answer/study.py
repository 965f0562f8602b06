"""The study that a call stands for: config.yaml with one data set, one model that answers as it is, and some methods.

Names of methods are those of config.yaml. There, what a trained actor states is named after the actor; here it is
`verbalized`, and the expectation over the model's own distribution `expected_confidence`. `Jobs` are those of the
study, as `study.artifacts` says; nothing here computes, and only the parts of the examples that something needs are
asked.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dualread import plugins
from dualread.apps.answer.examples import PARTS, UserExample
from dualread.errors import ConfigError, DataError, did_you_mean
from dualread.schema.base import NoSpec
from dualread.schema.study import Config
from dualread.store.job import Entry
from dualread.study.artifact_paths import Run
from dualread.study.artifacts import StudyArtifacts
from dualread.study.config import resolve
from dualread.study.files import laid_over, read
from dualread.study.jobs import Description
from dualread.study.shards import Shard, ShardOrView, StudyShards

BACKBONE, ACTOR, SEED, DATASET = "model", "base", 0, "examples"  # an actor without training has the seed 0
_CONFIG = Path(__file__).parents[2] / "study" / "config.yaml"
_FEWEST_IMAGES = 9  # of which the roles of a training split get one each
_PART_OF = {split: part for part, split in PARTS.items()}


def changes_of(settings: Mapping[str, Any] | str | Path | None) -> dict[str, Any]:
    """Return entries that are laid over config.yaml, as they are or as a YAML file has them.

    Raises:
        ConfigError: The file cannot be read.
    """
    return read(Path(settings)) if isinstance(settings, str | Path) else dict(settings or {})


def known_methods(changes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the methods of config.yaml with `changes` laid over it, as methods of a model that answers as it is.

    One that is named after its actor has the name of its reader. Of the others, those of the actor with most of them.
    """
    config = laid_over(read(_CONFIG), changes)
    entries = {name: entry for name, entry in config["methods"].items() if entry is not None}
    of_actors = {name: entry for name, entry in entries.items() if name == entry.get("actor")}
    others = {name: entry for name, entry in entries.items() if name not in of_actors}
    most = Counter(entry.get("actor", ACTOR) for entry in others.values()).most_common(1)[0][0]
    methods = {entry["reader"]: entry for entry in of_actors.values()}
    methods |= {name: entry for name, entry in others.items() if entry.get("actor", ACTOR) in (most, ACTOR)}
    called = {name: entry["reader"] for name, entry in of_actors.items()}

    def of_base(entry: Mapping[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in entry.items() if key not in ("actor", "tuned_on", "cost")}
        parents = {role: called.get(parent, parent) for role, parent in (entry.get("parents") or {}).items()}
        return {**kept, **({"parents": parents} if parents else {})}

    return {name: of_base(entry) for name, entry in methods.items()}


def chosen_methods(wanted: Iterable[str] | Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the entries of the wanted methods and of those that they build on, parents first.

    Args:
        wanted: Names, or {name: an entry as in config.yaml}; None for an entry means the known one.
        known: The known methods.

    Raises:
        ConfigError: A method is unknown, or builds on itself.
    """
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    described = {str(name): entry for name, entry in wanted.items() if entry} if isinstance(wanted, Mapping) else {}
    chosen: dict[str, dict[str, Any]] = {}

    def add(name: str, below: tuple[str, ...]) -> None:
        if name in below:
            raise ConfigError(
                f"methods: {name!r} builds on itself ({' on '.join([*below, name])}). Name another parent."
            )
        entry: Any = described.get(name, known.get(name))
        if entry is None and name in plugins.known("readers"):
            entry = {"reader": name}
        if entry is None:
            listed = ", ".join(known)
            raise ConfigError(f"methods: no method {name!r}. Known: {listed}.{did_you_mean(name, known)}")
        for parent in (entry.get("parents") or {}).values():
            add(parent, (*below, name))
        chosen.setdefault(name, {"label": name, "group": "Own", **entry})

    for name in names:
        add(name, ())
    if not chosen:
        raise ConfigError(f"methods: none. Choose some of {', '.join(known)}.")
    return chosen


def study_of(
    backbone: Mapping[str, Any],
    methods: Mapping[str, Mapping[str, Any]],
    *,
    prompt: str,
    batch_size: int,
    max_completion_tokens: int,
    changes: Mapping[str, Any],
) -> Config:
    """Return the study.

    Args:
        backbone: The entry of the checkpoint: `source` and `settings`.
        methods: The entries of the methods.
        prompt: The prompt by which the model answers.
        batch_size: Completions that are generated at once; a replay reads a quarter of them.
        max_completion_tokens: Longest answer, and longest sample of one.
        changes: Entries that are laid over those of config.yaml and of this call.

    Raises:
        ConfigError: Something is unknown or out of range.
    """
    config = read(_CONFIG)
    longest = {"max_completion_tokens": max_completion_tokens}
    drawn = {name for name, view in config["views"].items() if view.get("decoding", {}).get("temperature")}
    ours = {
        "study": DATASET,
        "seeds": [1],  # of trained actors, of which there are none
        "phantoms": None,
        "datasets": {**dict.fromkeys(config["datasets"]), DATASET: _dataset(prompt)},
        "backbones": {**dict.fromkeys(config["backbones"]), BACKBONE: {"label": BACKBONE, **backbone}},
        "actors": {**dict.fromkeys(config["actors"]), ACTOR: {"label": ACTOR}},
        "generation": {"settings": {"batch_size": batch_size}, "decoding": longest},
        "views": {name: {"decoding": longest} for name in drawn},
        "conditions": {name: None for name in config["conditions"] if name != "original"},
        "replay": {
            "settings": {"batch_size": max(1, batch_size // 4)},
            "agreement": {"max_argmax_mismatch_share": 1e-2},  # the others widen with the measured rounding
        },
    }
    merged = laid_over(laid_over(config, ours), changes)
    merged |= {"study": DATASET, "methods": {name: {**entry, "actor": ACTOR} for name, entry in methods.items()}}
    # A file that is laid over any study may have more of these, which are about its other actors and data sets.
    of_one = {"datasets": DATASET, "backbones": BACKBONE, "actors": ACTOR, "conditions": "original"}
    merged |= {section: {name: merged[section][name]} for section, name in of_one.items()}
    merged |= {"tables": {}, "figures": None, "contrasts": None, "only": None}
    return resolve(merged, source="dualread.confidences")


def _dataset(prompt: str) -> dict[str, Any]:
    return {
        "label": DATASET,
        "id": True,
        "loader": "table",
        "source": {"folder": DATASET},
        "settings": {"files": {"rows": "rows.jsonl"}},
        "splits": list(PARTS.values()),
        "roles": {
            "train": {"fit": 0.7, "stop": 0.1, "calibration": 0.2},
            "validation": "validation",
            "test": "test",
        },
        "pairing": None,
        "seed": 0,
        "prompt": prompt,
    }


def needed_parts(study: Config, parts: Sequence[str]) -> dict[str, list[str]]:
    """Return, for each part that is needed, the methods that are fitted on it; none for those that are only answered.

    Args:
        study: The study.
        parts: The parts whose answers are wanted.
    """
    shards = StudyShards(study)
    needed: dict[str, list[str]] = {part: [] for part in parts}
    for method in study.methods:
        if (split := shards.reads(method, "FITTED_ON")) is not None:
            needed.setdefault(_PART_OF[split], []).append(method)
    return needed


def check_examples(
    examples: Sequence[UserExample], needed: Mapping[str, Collection[str]], unfitted: Sequence[str]
) -> None:
    """Refuse methods that nothing here can be fitted on, and parts without an example.

    Args:
        examples: All examples.
        needed: As from `needed_parts`.
        unfitted: Methods that are fitted on nothing, which a message recommends.

    Raises:
        DataError: A needed part has no example, one on which a method is fitted has no reference answer, or there are
            too few images in the part `fit`.
    """
    for part, methods in needed.items():
        of_part = [example for example in examples if example.part == part]
        without = [example.place for example in of_part if not example.has_reference]
        fitted = f"{', '.join(methods)} {'are' if len(methods) > 1 else 'is'} fitted on"
        others = f" These methods are fitted on nothing: {', '.join(unfitted)}."
        if not of_part and methods:
            raise DataError(
                f"{fitted} answers to the part {part!r}, of which there is no example. Give examples with reference"
                f" answers, and say of which part each is in a column `part` (fit, validation, test), or give those of"
                f" one part as `{part}`.{others}"
            )
        if not of_part:
            raise DataError(
                f"no example of the part {part!r}, whose answers are wanted. Give some, or choose other `parts`."
            )
        if without and methods:
            raise DataError(
                f"{fitted} the part {part!r}, where {len(without)} of {len(of_part)} examples have no reference answer,"
                f" such as {without[0]}. Add their reference answers, or leave them out.{others}"
            )
        images = {name for example in of_part for name in example.record["image"]}
        if part == "fit" and methods and len(images) < _FEWEST_IMAGES:
            raise DataError(
                f"{fitted} the part {part!r}, which has {len(images)} images. Expected at least {_FEWEST_IMAGES}: most"
                f" give weights, a tenth says when to stop, and a fifth calibrates.{others}"
            )


_RUN = Run(BACKBONE, ACTOR, SEED)
Job = tuple[str, list[Entry]]


class _Split:
    """The wildcards of the job that makes a manifest."""

    def __init__(self, split: str) -> None:
        self.dataset, self.split = DATASET, split


class Jobs:
    """The jobs of one study.

    Args:
        study: The study.
        sources: The folder of the examples of each split that is needed.
        splits: The splits whose answers are wanted.
        methods: The methods whose confidences are wanted; the others are those that they build on.
        out: Where artifacts are linked.
    """

    def __init__(
        self,
        study: Config,
        sources: Mapping[str, Path],
        splits: Collection[str],
        methods: Sequence[str],
        out: Path,
    ) -> None:
        self._study, self._sources, self._splits, self._wanted, self._out = study, sources, splits, methods, out
        self._shards = StudyShards(study)
        self._methods = list(study.methods)
        self._artifacts = StudyArtifacts(study, self._shards, str(out), lambda _, split: str(sources[split]))

    @property
    def answers(self) -> Path:
        """The folder of the tables of answers, which the last job makes."""
        return Path(self._artifacts.of_actor("answers", _RUN)).parent

    def predictions(self, method: str) -> Path:
        """Return the table of a method's confidences, which says why where there are none."""
        return Path(self._artifacts.of_actor("predictions", _RUN, method)).with_name("predictions.parquet")

    def __iter__(self) -> Iterator[Job]:
        """Yield stage and entries of each job, in order."""
        artifacts, shards, wanted = self._artifacts, self._shards, {"methods": self._wanted, "splits": self._splits}
        manifests = [entry for split in self._sources for entry in artifacts.build_manifest(_Split(split))[1]]
        yield "build_manifest", _entries(({}, manifests))
        if len(self._sources) > 1:
            leakage = artifacts.manifests((DATASET, split) for split in sorted(self._sources))
            yield "check_leakage", _entries((leakage, [artifacts.entry(artifacts.at("leakage"), NoSpec())]))
        yield "copy_checkpoint", _entries(artifacts.copy_checkpoint(_RUN))
        yield "probe_checkpoint", _entries(artifacts.probe_checkpoint(_RUN))
        yield "generate", _entries(artifacts.generate(_RUN, self._asked(shards.generated(ACTOR))))
        yield "grade", _entries(artifacts.grade(_RUN, self._asked(shards.shards(ACTOR))))
        of_states = [method for method in self._methods if shards.reads(method, "FEATURES")]
        read = {shard for method in of_states for shard in (*self._scored(method), shards.fitted_shard(method))}
        replayed = [shard for shard in self._asked(shards.replayed(ACTOR)) if len(shard) == 4 or shard in read]
        if replayed:
            yield "replay", _entries(artifacts.replay(_RUN, replayed))
        yield "fit_readers", _entries(artifacts.fit_readers(_RUN, self._methods))
        yield "score_answers", _entries(artifacts.score_answers(_RUN, **wanted))
        yield "export_answers", _entries(artifacts.export_answers(_RUN, runs=[_RUN], **wanted))

    def _scored(self, method: str) -> list[Shard]:
        wanted = self._splits if method in self._wanted else ()
        return [shard for shard in self._shards.scored(method) if shard[1] in wanted]

    def _asked(self, shards: Sequence[ShardOrView]) -> list[ShardOrView]:
        """Return those of the shards and views that something reads, in their order."""
        views = {
            (*shard, view)
            for method in self._methods
            for views, of_step in (
                (self._shards.scoring_views(method), self._scored(method)),
                (self._shards.fitting_views(method), [self._shards.fitted_shard(method)]),
            )
            for view in views
            for shard in of_step
        }
        return [shard for shard in shards if shard[1] in self._sources and (len(shard) == 3 or shard in views)]


def _entries(described: Description) -> list[Entry]:
    inputs, entries = described
    return [Entry.of(entry, inputs) for entry in entries]
