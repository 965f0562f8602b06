"""Digests that keys are made of and that stages write into results.

They stand outside the store, whose code is in no key: an edit here makes again what has such a digest in it.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from dualread.errors import ArtifactError, ConfigError

MANIFEST_NAME = "MANIFEST.json"


def canonical_json(value: Any) -> bytes:
    """Return the one JSON text of `value`: sorted keys, no spaces, UTF-8.

    Raises:
        ConfigError: `value` holds something that JSON cannot express (a NaN, a set, a path).
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"spec: cannot be written as JSON ({error}). Use only strings, finite numbers, lists and mappings."
        ) from error
    return text.encode()


def digest_of(value: Any) -> str:
    """Return the sha256 (hexadecimal) of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def artifact_digest(directory: Path) -> str:
    """Return the content digest that the manifest of the artifact in `directory` states.

    Stages use it to record what they read. The runner has already compared the files with the manifest.

    Raises:
        ArtifactError: There is no artifact, or its manifest states no digest.
    """
    path = directory / MANIFEST_NAME
    try:
        return json.loads(path.read_bytes())["digest"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArtifactError(f"{path}: states no content digest ({error!r}). Compute the artifact again.") from error
