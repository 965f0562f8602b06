"""DualRead: how far a medical vision-language model's answer can be trusted, and whether trust comes from the image."""

import importlib
from typing import TYPE_CHECKING, Any

from dualread import read_once

if TYPE_CHECKING:
    from dualread.direct.confidences import confidences as confidences
    from dualread.own.evaluation import Evaluation as Evaluation
    from dualread.own.evaluation import evaluate as evaluate
    from dualread.own.scoring.results import Question as Question
    from dualread.own.scoring.scorer import Scorer as Scorer

__version__ = "0.3.0"

# Names that are imported on their first use, so that `import dualread` is fast. Their modules are texts without
# "dualread.": an import, or a module's full name, would make them part of the code of every stage.
_PUBLIC = {
    **dict.fromkeys(("evaluate", "Evaluation"), "own.evaluation"),
    "confidences": "direct.confidences",
    "Scorer": "own.scoring.scorer",
    "Question": "own.scoring.results",
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'dualread' has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)


read_once.install()  # at the end, because it runs this file again
