"""The key of a result: a digest of everything that can change it, by which the store finds it.

An edit that reaches none of its fields computes nothing again, and an edit that is taken back finds what was there
before it. Machine, time and paths are no fields: they are recorded, and change no result. `dualread explain --why`
shows in which fields two results of one output differ. Next: `dualread.store.store`, which finds the entry of a key.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dualread.store.digest import digest_of

FIELDS = ("stage", "code", "spec", "inputs", "packages", "python")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, kw_only=True)
class Action:
    """Everything that determines a result; two equal actions share one entry of the store.

    Attributes:
        stage: Name of the stage.
        code: Digest of the code closure.
        spec: The stage's settings, as plain JSON values.
        inputs: {input name: content digest}.
        packages: {distribution: public version} of all imported packages.
        python: Major and minor version of Python.
    """

    stage: str
    code: str
    spec: Mapping[str, Any]
    inputs: Mapping[str, str]
    packages: Mapping[str, str]
    python: str = PYTHON

    def fields(self) -> dict[str, Any]:
        """Return the action as a JSON object."""
        return {name: getattr(self, name) for name in FIELDS}

    @cached_property
    def recipe(self) -> str:
        """The digest of what is known of the action before its inputs are there, on every machine."""
        return digest_of({"stage": self.stage, "code": self.code, "spec": self.spec, "python": self.python})

    @cached_property
    def key(self) -> str:
        """The action's name in the store."""
        return digest_of(self.fields())
