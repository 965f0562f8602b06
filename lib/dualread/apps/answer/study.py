"""The study that a call stands for: config.yaml with one data set, one model that answers as it is, and some methods.

Names of methods are those of config.yaml. There, what a trained actor states is named after the actor; here it is
`verbalized`, and the expectation over the model's own distribution `expected_confidence`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dualread import plugins
from dualread.apps.answer.examples import PARTS, UserExample
from dualread.errors import ConfigError, DataError, did_you_mean
from dualread.schema.study import Config
from dualread.study.config import resolve
from dualread.study.files import laid_over, read
from dualread.study.shards import StudyShards

BACKBONE, ACTOR, SEED, DATASET = "model", "base", 0, "examples"  # an actor without training has the seed 0
_CONFIG = Path(__file__).parents[2] / "study" / "config.yaml"
_FEWEST_IMAGES = 9  # of which the roles of a training split get one each
_PART_OF = {split: part for part, split in PARTS.items()}


def changes_of(settings: Mapping[str, Any] | str | Path | None) -> dict[str, Any]:
    """Return entries that are laid over config.yaml, as they are or as a YAML file has them."""
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

    `wanted` are names, or {name: an entry as in config.yaml}, where None means the known one.
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
    backbone: Mapping[str, Any] | None,
    methods: Mapping[str, Mapping[str, Any]],
    *,
    prompt: str,
    batch_size: int,
    max_completion_tokens: int,
    changes: Mapping[str, Any],
    claims: Mapping[str, Any] | None = None,
) -> Config:
    """Return the study of one checkpoint, whose entry is `backbone`, or of any if None, to look at methods alone.

    `batch_size` completions are generated at once, and a replay reads a quarter of them; answers, and samples of them,
    have up to `max_completion_tokens`. `changes` are laid over config.yaml and this call; `claims` is that entry of the
    data set, if answers are reports.
    """
    config = read(_CONFIG)
    any_backbone = next(iter(config["backbones"].values())) if backbone is None else backbone
    longest = {"max_completion_tokens": max_completion_tokens}
    drawn = {name for name, view in config["views"].items() if view.get("decoding", {}).get("temperature")}
    ours = {
        "study": DATASET,
        "seeds": [1],  # of trained actors, of which there are none
        "phantoms": None,
        "datasets": {**dict.fromkeys(config["datasets"]), DATASET: _dataset(prompt, claims)},
        "backbones": {**dict.fromkeys(config["backbones"]), BACKBONE: {"label": BACKBONE, **any_backbone}},
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
    study = resolve(merged, source="dualread.confidences")
    if asked := [name for name, view in study.views.items() if view.groups and view.groups.service]:
        raise ConfigError(
            f"views.{asked[0]}.groups.service: no service is asked in a call. Give a `source`, the checkpoint of a"
            " judge, or run a study, whose services `dualread ask` asks."
        )
    return study


def _dataset(prompt: str, claims: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        **({} if claims is None else {"claims": claims}),
        "label": DATASET,
        "id": True,
        "loader": "table",
        "source": {"folder": DATASET},
        "settings": {"files": {"rows": "rows.jsonl"}},
        "splits": list(PARTS.values()),
        "roles": {"train": {"fit": 0.7, "stop": 0.1, "calibration": 0.2}, "validation": "validation", "test": "test"},
        "pairing": None,
        "seed": 0,
        "prompt": prompt,
    }


def uncalibrated(study: Config, examples: Sequence[UserExample], parts: Sequence[str]) -> dict[str, str]:
    """Return the methods that give a score alone, for want of examples to fit them on, as `StudyShards` takes them."""
    there, split = {PARTS[example.part] for example in examples}, PARTS[parts[0]]
    return {name: split for name in scoring_unfitted(study) if StudyShards(study).reads(name, "FITTED_ON") not in there}


def scoring_unfitted(study: Config) -> list[str]:
    """Return the methods that are fitted only to turn a score of theirs into a confidence."""
    readers = {name: entry.reader for name, entry in study.methods.items() if not entry.parents}
    return [name for name, reader in readers.items() if plugins.declared("readers", reader, "SCORES_UNFITTED")]


def needed_parts(
    study: Config, parts: Sequence[str], unfitted: Mapping[str, str] | None = None
) -> dict[str, list[str]]:
    """Return, for each part that is needed, the methods that are fitted on it; none where it is only answered.

    Answers to `parts` are wanted; `unfitted` as from `uncalibrated`.
    """
    shards = StudyShards(study, unfitted)
    needed: dict[str, list[str]] = {part: [] for part in parts}
    for method in study.methods:
        if (split := shards.reads(method, "FITTED_ON")) is not None:
            needed.setdefault(_PART_OF[split], []).append(method)
    return needed


def check_examples(
    examples: Sequence[UserExample], needed: Mapping[str, Collection[str]], unfitted: Sequence[str]
) -> None:
    """Refuse methods that nothing here can be fitted on, and parts without an example.

    `needed` is as from `needed_parts`; `unfitted` methods need no reference answer, which a message recommends.
    """
    for part, methods in needed.items():
        of_part = [example for example in examples if example.part == part]
        without = [example.place for example in of_part if not example.has_reference]
        fitted = f"{', '.join(methods)} {'are' if len(methods) > 1 else 'is'} fitted on"
        others = f" These methods need none: {', '.join(unfitted)}."
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
                f" such as {without[0]}. Add their reference answers (with `spans`, the `labels` of their claims), or"
                f" leave them out.{others}"
            )
        images = {name for example in of_part for name in example.record["image"]}
        if part == "fit" and methods and len(images) < _FEWEST_IMAGES:
            raise DataError(
                f"{fitted} the part {part!r}, which has {len(images)} images. Expected at least {_FEWEST_IMAGES}: most"
                f" give weights, a tenth says when to stop, and a fifth calibrates.{others}"
            )
