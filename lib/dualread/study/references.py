"""Names in one section of a config that must be entries of another section."""

from collections.abc import Iterator

from dualread.errors import did_you_mean
from dualread.schema.study import Config

# The means over OOD data sets, which contrasts name beside data sets: of answers, and of pairs of answers.
MEANS = ("ood6", "ood_ccg")


def unknown_references(config: Config) -> Iterator[str]:
    """Yield a line per name that is no entry of the section that it must be an entry of."""
    for where, section, name in _references(config):
        if name not in (known := getattr(config, section)):
            listed = ", ".join(known) or "none"
            yield f"{where}: {name!r} is not in {section}. Known: {listed}.{did_you_mean(name, known)}"


def _references(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield (where, section, name) of every name that must be an entry of `section`."""
    for name, dataset in config.datasets.items():
        if dataset.source.phantom is not None:
            yield f"datasets.{name}.source.phantom", "phantoms", dataset.source.phantom
    for name, backbone in config.backbones.items():
        if backbone.source.pretrain and (read := backbone.source.pretrain.pool.dataset):
            yield f"backbones.{name}.source.pretrain.pool.dataset", "datasets", read
    yield from _of_methods(config)
    for name, view in config.views.items():
        yield from ((f"views.{name}.groups.of", "views", read) for read in (view.groups.of if view.groups else ()))
    for name, condition in config.conditions.items():
        if condition.completions is not None:
            yield f"conditions.{name}.completions", "conditions", condition.completions
        for section in ("datasets", "actors"):
            yield from ((f"conditions.{name}.{section}", section, it) for it in getattr(condition, section) or [])
    for name, actor in config.actors.items():
        yield from ((f"actors.{name}.checkpoints", "backbones", backbone) for backbone in actor.checkpoints or {})
        if actor.same_as is not None:
            yield f"actors.{name}.same_as", "actors", actor.same_as
        if (drawn := (actor.settings or {}).get("draws_as")) is not None:
            yield f"actors.{name}.settings.draws_as", "actors", drawn
    yield from _of_tables(config)
    for name, contrast in config.contrasts.items():
        for key in ("method", "baseline"):
            yield f"contrasts.{name}.{key}", "methods", getattr(contrast, key)
        for dataset in contrast.datasets or []:
            if dataset not in MEANS:
                yield f"contrasts.{name}.datasets", "datasets", dataset
    if config.metrics.changed_from is not None:
        yield "metrics.changed_from", "actors", config.metrics.changed_from
    for name, figure in config.figures.items():
        for section in ("actors", "methods", "datasets"):
            yield from ((f"figures.{name}.{section}", section, it) for it in getattr(figure, section) or [])
    for section in ("backbones", "actors", "datasets", "methods") if config.only else ():
        yield from ((f"only.{section}", section, it) for it in getattr(config.only, section) or [])


def _of_methods(config: Config) -> Iterator[tuple[str, str, str]]:
    for name, method in config.methods.items():
        yield f"methods.{name}.actor", "actors", method.actor
        for role, parent in method.parents.items():
            yield f"methods.{name}.parents.{role}", "methods", parent
        if method.transfer is not None:
            yield f"methods.{name}.transfer.method", "methods", method.transfer.method
        for view in method.views or []:
            yield f"methods.{name}.views", "views", view


def _of_tables(config: Config) -> Iterator[tuple[str, str, str]]:
    for name, table in config.tables.items():
        for key in ("methods", "without"):
            yield from ((f"tables.{name}.{key}", "methods", method) for method in getattr(table, key) or [])
        for dataset in table.datasets or []:
            yield f"tables.{name}.datasets", "datasets", dataset
        if table.method is not None:
            yield f"tables.{name}.method", "methods", table.method
