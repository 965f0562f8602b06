"""A folder with everything that scoring needs: readers, their settings, thresholds, a model card, perhaps the actor.

bundle.json         what the readers are of, how the actor is asked, and the sha256 of each reader
readers/            one <method>.safetensors for each method
thresholds.json     the thresholds that were chosen on validation, for each method
metrics.csv         the study's metrics of these methods, in full precision
README.md           the model card
checkpoint/         the actor, if it was asked for
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread.declared.base import Section
from dualread.errors import ArtifactError, ConfigError
from dualread.scoring.thresholds import Threshold
from dualread.store.digest import read_json, sha256_file

CHECKPOINT = "checkpoint"
METRICS = "metrics.csv"
READERS = "readers"
_BUNDLE, _THRESHOLDS = "bundle.json", "thresholds.json"
_FORMAT = 1


class Bundle(Section):
    """What bundle.json and thresholds.json say."""

    study: str
    backbone: str
    actor: str
    seed: int
    method: str
    """The method whose reader gives the confidence."""
    readers: dict[str, str]
    """The sha256 of each method's reader."""
    scoring: dict[str, Any]
    """What the readers depend on, see `readers.requirements.Requirements`, without views."""
    thresholds: list[Threshold]
    """The thresholds of all methods."""

    def files(self, folder: Path) -> dict[str, Path]:
        """Return the file of each reader.

        Raises:
            ArtifactError: A file is missing or has other contents than when the bundle was written.
        """
        found = {method: _reader_file(folder, method) for method in self.readers}
        for method, file in found.items():
            try:
                same = sha256_file(file) == self.readers[method]
            except OSError as error:
                raise ArtifactError(f"{file}: cannot be read ({error.strerror}). {_AGAIN}") from error
            if not same:
                raise ArtifactError(f"{file}: its sha256 is not the one that {_BUNDLE} gives. {_AGAIN}")
        return found


_AGAIN = "Export the bundle again, or download it again."


def is_bundle(path: Path) -> bool:
    """Return whether `path` is a folder with a bundle.json."""
    return (path / _BUNDLE).is_file()


def read_bundle(folder: Path) -> Bundle:
    """Read what `write_bundle` wrote.

    Raises:
        ArtifactError: A file is missing, damaged or of another format.
    """
    try:
        known = read_json(folder / _BUNDLE)
        if known.pop("format") != _FORMAT:
            raise ValueError(f"its format is not {_FORMAT}")
        bundle = Bundle.of({**known, "thresholds": read_json(folder / _THRESHOLDS)}, _BUNDLE)
        if strange := [name for name in bundle.readers if Path(name).name != name]:
            raise ValueError(f"{strange[0]!r} is no name of a method")
        if wrong := [one.value for one in bundle.thresholds if one.value is not None and not 0 <= one.value <= 1]:
            raise ValueError(f"the threshold {wrong[0]} is no confidence from 0 to 1")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError) as error:
        raise ArtifactError(f"{folder}: {_BUNDLE} or {_THRESHOLDS} cannot be read ({error!r}). {_AGAIN}") from error
    return bundle


def copy_readers(files: Mapping[str, Path], folder: Path) -> dict[str, str]:
    """Copy the file of each method's reader into `folder`; return the sha256 of each."""
    (folder / READERS).mkdir(parents=True, exist_ok=True)
    for method, file in files.items():
        shutil.copyfile(file, _reader_file(folder, method))
    return {method: sha256_file(_reader_file(folder, method)) for method in files}


def write_bundle(folder: Path, bundle: Bundle) -> None:
    """Write bundle.json and thresholds.json."""
    known = bundle.model_dump()
    thresholds = known.pop("thresholds")
    _write_json(folder / _BUNDLE, {"format": _FORMAT, **known})
    _write_json(folder / _THRESHOLDS, thresholds)


def _reader_file(folder: Path, method: str) -> Path:
    return folder / READERS / f"{method}.safetensors"


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
