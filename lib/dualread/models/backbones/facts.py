"""What experiments say about a checkpoint (`models/probe.py`): how its rows may be read, and types of its tokens."""

import json
from dataclasses import dataclass
from pathlib import Path

# What is read once for all rows that share it; the last one shares nothing and caches nothing. The fastest comes first.
READS = ("image prefix", "prompt", "nothing")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts that passes depend on. The defaults are those of most models.

    Attributes:
        completion_type: Token type of a completion, 0 or 1; of no effect where a model has no token types.
        shared: One of `READS`: the prompt up to and with its last image token, the whole prompt, or nothing.
        images_once: Whether an image may be encoded once for all prompts about it, apart from them.
        tree: Whether many continuations of a prompt may be read in one pass.
    """

    completion_type: int = 0
    shared: str = READS[0]
    images_once: bool = True
    tree: bool = True

    @classmethod
    def read(cls, file: Path) -> "Facts":
        """Return the facts that the stage `probe_checkpoint` wrote to `file`."""
        return cls(**json.loads(file.read_bytes())["facts"])
