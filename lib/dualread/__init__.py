"""DualRead: how far a medical vision-language model's answer can be trusted, and whether trust comes from the image."""

import importlib
from typing import TYPE_CHECKING, Any

from dualread import source_snapshot as source_snapshot

if TYPE_CHECKING:
    from dualread.apps.answer.confidences import confidences as confidences
    from dualread.apps.evaluate.evaluation import Evaluation as Evaluation
    from dualread.apps.evaluate.evaluation import evaluate as evaluate
    from dualread.apps.score.results import Question as Question
    from dualread.apps.score.scorer import Scorer as Scorer

__version__ = "0.3.0"

# Names that are imported on their first use, so that `import dualread` is fast. Their modules are texts without
# "dualread.": an import, or a module's full name, would make them part of the code of every stage.
_PUBLIC = {
    **dict.fromkeys(("evaluate", "Evaluation"), "apps.evaluate.evaluation"),
    "confidences": "apps.answer.confidences",
    "Scorer": "apps.score.scorer",
    "Question": "apps.score.results",
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'dualread' has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)


source_snapshot.install()  # at the end, because it runs this file again
