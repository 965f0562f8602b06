"""A fitted reader as one safetensors file, which is enough to score a new image without the workflow. No pickle.

The header holds the reader's module, settings, notes, provenance and the names of its weights. It holds the same of the
parents, nested. The name of a parent's tensor starts with its role: "post.state.weight" is the P-State weight under
DualRead's post-answer branch. Where a reader could not be fitted, there are no weights, and `unfitted` is the reason.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dualread.artifacts.tensors import TensorFile, read_file, write_tensors
from dualread.errors import ArtifactError, ConfigError
from dualread.limits import check_plugin
from dualread.plugins import name_of
from dualread.readers.base import FittedReader, Weights, settings_of
from dualread.readers.declarations import features
from dualread.schema.base import Wire

FORMAT = 2


def save_reader(path: Path, reader: FittedReader) -> None:
    """Write `reader` with its parents to `path`; equal readers give equal bytes."""
    write_tensors(path, dict(_prefixed(reader, "")), {"format": FORMAT, **_header(reader)})


def load_reader(path: Path, *, plugins: Collection[str] = ()) -> FittedReader:
    """Read a reader that `save_reader` wrote; the file may come from anybody.

    It may name readers of other packages only where the user has named these in `plugins`: packages, or single modules.

    Raises:
        UntrustedNameError: The file, or a parent in it, names a reader of another package.
        ArtifactError: The file is damaged, of another format, lacks a tensor that its header names, or has weights that
            are not finite.
    """
    return fitted_reader(read_file(path), plugins)


def fitted_reader(file: TensorFile, plugins: Collection[str] = ()) -> FittedReader:
    """Return the reader that a file holds; see `load_reader`."""
    path, tensors = file.path, file.tensors

    def nested(header: Mapping[str, Any], prefix: str) -> FittedReader:
        """Return the reader whose tensors have this prefix: the roles that lead to it."""
        module, place = str(header["module"]), "".join(f"parents.{role}." for role in prefix.split(".")[:-1])
        check_plugin("readers", module, plugins, f"{path}: {place}module")
        weights = {name: tensors[prefix + name] for name in header["weights"]}
        if not isinstance(header["provenance"], Mapping):
            raise TypeError(f"{place}provenance is {header['provenance']!r:.100}, expected a mapping")
        return FittedReader(
            module=module,
            settings=settings_of(module, header["settings"]),
            weights=Weights(tensors=weights, notes=header["notes"]),
            parents={role: nested(parent, f"{prefix}{role}.") for role, parent in header["parents"].items()},
            provenance=header["provenance"],
            unfitted=header.get("unfitted"),
        )

    if (actual := file.header.get("format")) != FORMAT:
        raise ArtifactError(
            f"{path}: not a reader (format {actual!r}, and not {FORMAT}). Expected the reader.safetensors that stage"
            " fit_readers writes, or one of a folder that `dualread export` wrote. If it is one, fit it again."
        )
    if broken := sorted(name for name, tensor in tensors.items() if not np.isfinite(tensor).all()):
        raise ArtifactError(
            f"{path}: the weights {', '.join(broken)} hold NaN or infinite values. Fit the reader again."
        )
    try:
        return nested(file.header, "")
    except KeyError as error:
        raise ArtifactError(
            f"{path}: {error} is missing from the header or the tensors. Fit the reader again."
        ) from error
    except (ConfigError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(
            f"{path}: not a reader ({error}). Expected the reader.safetensors that stage fit_readers writes, or one of"
            " a folder that `dualread export` wrote."
        ) from error


def features_read(module: str, settings: Wire, parents: Iterable[FittedReader] = ()) -> list[str]:
    """Return the sorted names of the replay's tensors that a reader and its parents read; empty without a replay."""
    names = set(features(name_of("readers", module), settings))
    for parent in parents:
        names.update(features_read(parent.module, parent.settings.to_spec(), parent.parents.values()))
    return sorted(names)


def _prefixed(reader: FittedReader, prefix: str) -> Iterable[tuple[str, np.ndarray]]:
    yield from ((prefix + name, array) for name, array in reader.weights.tensors.items())
    for role, parent in reader.parents.items():
        yield from _prefixed(parent, f"{prefix}{role}.")


def _header(reader: FittedReader) -> dict[str, Any]:
    return {
        "module": reader.module,
        "settings": reader.settings.to_spec(),
        "weights": sorted(reader.weights.tensors),
        "notes": dict(reader.weights.notes),
        "provenance": dict(reader.provenance),
        "parents": {role: _header(parent) for role, parent in reader.parents.items()},
        **({} if reader.unfitted is None else {"unfitted": reader.unfitted}),
    }
