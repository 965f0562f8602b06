"""Read the declarations in the file of a reader, without importing it.

Each declaration is one assignment of a literal at top level, and has a default:
    FITTED_ON: str. Required with a function `fit`: the split whose answers and labels it reads, "train" or
        "validation".
    FEATURES: tuple[str, ...]. What the reader reads of the replay: tensors, and columns of its index about tokens
        (`answers.TOKENS`); "{name}" stands for the value of the setting `name`, which has no default. Default: none.
    PARENTS: tuple[str, ...]. Roles of the fitted readers on which it builds, whatever these are fitted on and whichever
        views they read. Default: none.
    VIEWS: str. When the reader reads the views that its config entry lists: "fit" (views of the answers on which it is
        fitted) or "score" (views of all answers, including those). Default: never.
    GROUPS: bool. Whether the reader counts samples by meaning where its entry lists a view of `groups`. Default: False.
    NULL: bool. Whether the method is a null: it sees neither the image nor a state. A method that does not exceed
        it has not been shown to use the image. Default: False.
    SCORES_UNFITTED: bool. Whether `score` gives the score before anything is fitted (`calibrated` does): the fit only
        turns it into a confidence. Default: False.

A class `Settings` says what the config may set (`schema.base.settings_class`).
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from dualread import plugins
from dualread.errors import ConfigError
from dualread.schema.base import Wire

_FLAGS = ("GROUPS", "NULL", "SCORES_UNFITTED")
_DEFAULTS = {"FITTED_ON": None, "FEATURES": (), "PARENTS": (), "VIEWS": None, **dict.fromkeys(_FLAGS, False)}
_ALLOWED = {"FITTED_ON": (None, "train", "validation"), "VIEWS": (None, "fit", "score")}
_ALLOWED |= dict.fromkeys(_FLAGS, (False, True))


def declared(module: str, constant: str) -> Any:
    """Return what the reader called `module` declares as `constant`, a literal, or the default."""
    name = plugins.name_of("readers", module)
    value = plugins.declared("readers", name, constant)
    return _DEFAULTS[constant] if value is None else value


def features(reader: str, settings: Wire) -> tuple[str, ...]:
    """Return the FEATURES of the reader called `reader`; a ConfigError names a setting of theirs that is missing."""
    try:
        return tuple(name.format_map(settings) for name in plugins.declared("readers", reader, "FEATURES") or ())
    except KeyError as error:
        raise ConfigError(f"settings: have no {error}, by which {reader!r} names what it reads. Add it.") from error


def problems(name: str, parents: Collection[str], views: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with a reader's declarations, and where its config entry contradicts them.

    `parents` are the roles in the entry, and `views` its views.
    """
    declarations = {constant: declared(plugins.module_of("readers", name), constant) for constant in _DEFAULTS}
    where, fitted_on, roles = f"reader: {name!r}:", declarations["FITTED_ON"], declarations["PARENTS"]
    for constant, allowed in _ALLOWED.items():
        if declarations[constant] not in allowed:
            known = " or ".join(repr(value).replace("'", '"') for value in allowed if value)
            yield f"{where} {constant} is {declarations[constant]!r}. Expected {known}, or no {constant}."
    for constant in ("FEATURES", "PARENTS"):
        value = declarations[constant]
        if not isinstance(value, tuple | list) or not all(isinstance(member, str) for member in value):
            yield f'{where} {constant} is {value!r}. Expected a tuple of names, such as ("name",).'
    is_fitted = plugins.defines("readers", name, "fit")
    if is_fitted and fitted_on is None:
        yield f'{where} it defines `fit` but no FITTED_ON. Set FITTED_ON to "train" or "validation".'
    if not is_fitted and fitted_on is not None:
        yield f"{where} FITTED_ON is {fitted_on!r}, but there is no function `fit`. Define `fit`, or remove FITTED_ON."
    if "target" in parents and fitted_on != "train":
        yield f"parents.target: the reader {name!r} learns nothing of training answers. Choose one that does."
    if set(parents) - {"target"} != set(roles):
        yield f"parents: {list(parents)}; the reader {name!r} builds on {', '.join(roles) or 'none'}."
    if (declarations["VIEWS"] is None) != (not views):
        expected = "none" if declarations["VIEWS"] is None else "at least one"
        yield f"views: {list(views)}; the reader {name!r} reads {expected}."
