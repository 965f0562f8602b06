"""DualRead: how far a medical vision-language model's answer can be trusted, and whether trust comes from the image."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualread.commands.evaluate.evaluation import Evaluation as Evaluation
    from dualread.commands.evaluate.evaluation import evaluate as evaluate

__version__ = "0.2.0"

# Loaded when they are first used, so that `import dualread` is fast.
_PUBLIC = dict.fromkeys(("evaluate", "Evaluation"), "dualread.commands.evaluate.evaluation")


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'dualread' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_PUBLIC[name]), name)
