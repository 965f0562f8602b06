"""Training examples of a tiny backbone: a prompt and a completion for every prompt of the study.

The stated confidence of a completion is lower for a difficult question, still lower after a wrong answer, and noisy.
The backbone therefore learns to state confidences that vary and are only partly informative. The tokens of a wrong
answer have weight 0: the backbone is trained to state its confidence in such an answer, but not to give it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dualread.models import prompts
from dualread.training.corpora import Item

DATA_FILES = (
    "models/prompts/shared.txt",
    "models/prompts/option_visible.txt",
    "models/prompts/p_true.txt",
    "models/prompts/self_probing.txt",
    "models/prompts/ensemble_2.txt",
    "models/prompts/ensemble_3.txt",
    "models/prompts/ensemble_4.txt",
    "models/prompts/vl_calibration.txt",
)

# Loss weights. Words that depend on the image count most. Tags are learned within a few steps, and the noise of stated
# confidences cannot be learned. Compared with equal weights, exact match after 200 steps rose from 0.52 to 0.61.
_SEEN = 3.0
_FORM = 0.3
_STATED = 0.3


# The tags of the output formats, each with the line break that follows it in the completions below.
_TEXTS, _NUMBERS = ("vision", "reasoning", "answer", "analysis"), ("", "vision_", "reasoning_")
TAGS = (
    *(tag for name in _TEXTS for tag in (f"<{name}>", f"</{name}>\n")),
    *(tag for name in _NUMBERS for tag in (f"<{name}confidence>", f"</{name}confidence>")),
)


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """A prompt, the text of the user turn, and the completion to learn, as parts with their loss weights.

    The completion is the concatenation of the texts, followed by the end-of-turn token with weight 1.
    """

    prompt: str
    parts: tuple[tuple[str, float], ...]

    @property
    def completion(self) -> str:
        """The text of the completion."""
        return "".join(text for text, _ in self.parts)


def _option_visible(item: Item, rng: np.random.Generator) -> Exercise:
    options = item.options or (item.answer, *item.wrong_answers, "none", "unclear", "not shown", "other")[:4]
    shuffled = tuple(options[i] for i in rng.permutation(len(options)))
    return _answered(prompts.render("option_visible", question=item.question, options=shuffled), item, rng)


def _answered(prompt: str, item: Item, rng: np.random.Generator) -> Exercise:
    answer, right = _proposal(item, rng, share_wrong=0.2)
    return Exercise(
        prompt=prompt,
        parts=(
            ("<reasoning>", _FORM),
            (item.findings, _SEEN),
            ("</reasoning>\n<answer>", _FORM),
            (answer, _SEEN if right else 0.0),
            ("</answer>\n<confidence>", _FORM),
            (str(_stated(item, right, rng)), _STATED),
            ("</confidence>", _FORM),
        ),
    )


def _vl_calibration(item: Item, rng: np.random.Generator) -> Exercise:
    answer, right = _proposal(item, rng, share_wrong=0.2)
    vision, reasoning = (str(round(_stated(item, right, rng) / 10)) for _ in range(2))
    return Exercise(
        prompt=prompts.render("vl_calibration", question=item.question),
        parts=(
            ("<vision>", _FORM),
            (item.findings, _SEEN),
            ("</vision>\n<reasoning>", _FORM),
            (item.evidence, _SEEN),
            ("</reasoning>\n<answer>", _FORM),
            (answer, _SEEN if right else 0.0),
            (f"</answer>\n<analysis>{item.evidence}</analysis>\n<confidence><vision_confidence>", _FORM),
            (vision, _STATED),
            ("</vision_confidence><reasoning_confidence>", _FORM),
            (reasoning, _STATED),
            ("</reasoning_confidence></confidence>", _FORM),
        ),
    )


def _p_true(item: Item, rng: np.random.Generator) -> Exercise:
    answer, right = _proposal(item, rng, share_wrong=0.5)
    says_yes = right if rng.random() < 0.9 else not right
    prompt = prompts.render("p_true", question=item.question, answer=answer)
    return Exercise(prompt=prompt, parts=(("Yes" if says_yes else "No", _SEEN),))


def _probe(template: str) -> Callable[[Item, np.random.Generator], Exercise]:
    def make(item: Item, rng: np.random.Generator) -> Exercise:
        answer, right = _proposal(item, rng, share_wrong=0.5)
        prompt = prompts.render(template, question=item.question, answer=answer)
        return Exercise(prompt=prompt, parts=((str(_stated(item, right, rng)), _STATED),))

    return make


# What makes the exercise of each prompt from an item.
EXERCISES: dict[str, Callable[[Item, np.random.Generator], Exercise]] = {
    "shared": lambda item, rng: _answered(prompts.render("shared", question=item.question), item, rng),
    "option_visible": _option_visible,
    "vl_calibration": _vl_calibration,
    "p_true": _p_true,
    **{name: _probe(name) for name in ("self_probing", "ensemble_2", "ensemble_3", "ensemble_4")},
}


def _proposal(item: Item, rng: np.random.Generator, *, share_wrong: float) -> tuple[str, bool]:
    if item.wrong_answers and rng.random() < share_wrong:
        return item.wrong_answers[rng.integers(len(item.wrong_answers))], False
    return item.answer, True


def _stated(item: Item, right: bool, rng: np.random.Generator) -> int:
    """Draw a stated confidence in 1..99: about 90 for the easiest questions, 50 for the hardest; 35 less if wrong."""
    level = 90 - 40 * item.difficulty
    return int(np.clip(rng.normal(level, 8) if right else rng.normal(level - 35, 15), 1, 99))
