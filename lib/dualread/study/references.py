"""Names in one section of a config that must be entries of another section."""

from collections.abc import Iterator, Mapping
from typing import Any

from dualread.errors import did_you_mean
from dualread.schema.study import Config

# The means over OOD data sets, which contrasts name beside data sets: of answers, and of pairs of answers.
MEANS = ("ood6", "ood_ccg")
# By section: where its entries have a name, a list of names, or names by role; and the section that has these.
_REFERENCES = {
    "datasets": {"source.phantom": "phantoms"},
    "backbones": {"source.pretrain.pool.dataset": "datasets"},
    "methods": {"actor": "actors", "parents": "methods", "transfer.method": "methods", "views": "views"},
    "views": {"groups.of": "views"},
    "conditions": {"completions": "conditions", "datasets": "datasets", "actors": "actors"},
    "actors": {"same_as": "actors", "settings.draws_as": "actors"},
    "tables": {"methods": "methods", "without": "methods", "datasets": "datasets", "method": "methods"},
    "contrasts": {"method": "methods", "baseline": "methods", "datasets": "datasets"},
    "figures": {"actors": "actors", "methods": "methods", "datasets": "datasets"},
}


def unknown_references(config: Config) -> Iterator[str]:
    """Yield a line per name that is no entry of the section that it must be an entry of."""
    for where, section, name in _references(config):
        if name not in (known := getattr(config, section)):
            listed = ", ".join(known) or "none"
            yield f"{where}: {name!r} is not in {section}. Known: {listed}.{did_you_mean(name, known)}"


def value_at(entry: Any, path: str) -> Any:
    """Return what an entry has at a dotted path; None where there is nothing."""
    for key in path.split("."):
        if entry is None:
            return None
        entry = entry.get(key) if isinstance(entry, Mapping) else getattr(entry, key)
    return entry


def _references(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield (where, section, name) of every name that must be an entry of `section`."""
    for section, paths in _REFERENCES.items():
        for name, entry in getattr(config, section).items():
            for path, target in paths.items():
                for where, reference in _named(f"{section}.{name}.{path}", value_at(entry, path)):
                    if (section, path) != ("contrasts", "datasets") or reference not in MEANS:
                        yield where, target, reference
    for name, actor in config.actors.items():
        yield from ((f"actors.{name}.checkpoints", "backbones", backbone) for backbone in actor.checkpoints or {})
    yield from ((where, "actors", it) for where, it in _named("metrics.changed_from", config.metrics.changed_from))
    for section in ("backbones", "actors", "datasets", "methods"):
        yield from ((where, section, it) for where, it in _named(f"only.{section}", value_at(config.only, section)))


def _named(where: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield each name in a value, with its place."""
    if isinstance(value, Mapping):
        yield from ((f"{where}.{role}", name) for role, name in value.items())
    elif value is not None:
        yield from ((where, name) for name in (value if isinstance(value, list | tuple) else [value]))
