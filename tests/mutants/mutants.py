"""One changed line of the library at a time, and the test files that notice it.

What one line breaks should be noticed by two tests in two files: by one alone, it is one deleted test away from being
noticed by none; by a hundred, it hides what else fails. `test_mutants.py` changes the lines, in a copy. When a line here
is edited in the library, edit it here too.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One changed line.

    Attributes:
        what: What is wrong then.
        file: The file below lib/dualread.
        before: The line, without white space at its ends; or a part of it that occurs once in the file.
        after: What takes its place.
        noticed_by: Test files, below tests/, that fail; two or more.
    """

    what: str
    file: str
    before: str
    after: str
    noticed_by: tuple[str, ...]


MUTANTS = (
    # --- models
    Mutant(
        "the answer block ends one token late",
        "models/replay/positions.py",
        "close=next(t for t, (_, right) in enumerate(spans) if right >= close_end),",
        "close=next(t for t, (left, _) in enumerate(spans) if left + 1 >= close_end),",
        ("models/replay/test_positions.py", "models/replay/test_example.py"),
    ),
    Mutant(
        "without a block, the stop token does not count",
        "models/replay/positions.py",
        "close=len(token_ids) - 1, answer=tuple(range(len(token_ids))), last=last, has_answer_block=False",
        "close=last, answer=tuple(range(len(token_ids))), last=last, has_answer_block=False",
        ("models/replay/test_positions.py", "models/replay/test_example.py"),
    ),
    Mutant(
        "a token that touches the answer is of the answer",
        "grading/spans.py",
        "return tuple(t for t, (left, right) in enumerate(spans) if max(left, start) < min(right, end))",
        "return tuple(t for t, (left, right) in enumerate(spans) if max(left, start) <= min(right, end))",
        ("grading/test_spans.py", "models/replay/test_positions.py"),
    ),
    Mutant(
        "kappa multiplies",
        "models/replay/pooling.py",
        "return torch.softmax(cosine / kappa, dim=0) @ image_states",
        "return torch.softmax(cosine * kappa, dim=0) @ image_states",
        ("models/replay/test_pooling.py", "models/replay/test_example.py"),
    ),
    Mutant(
        "answers are pooled in bfloat16",
        "models/replay/pooling.py",
        "return states.float().mean(dim=0)",
        "return states.mean(dim=0)",
        ("models/replay/test_pooling.py", "models/replay/test_forward.py"),
    ),
    Mutant(
        "the answer's states are read one token early",
        "models/replay/forward.py",
        "h_ans = answer_state(final[[1 + t for t in at.answer]])",
        "h_ans = answer_state(final[list(at.answer)])",
        ("models/replay/test_forward.py", "models/replay/test_example.py"),
    ),
    Mutant(
        "the middle layer is read at a stop token",
        "models/replay/forward.py",
        '"h_mid": middle[at.last],',
        '"h_mid": middle[-1],',
        ("models/replay/test_forward.py", "models/replay/test_example.py"),
    ),
    Mutant(
        "padding behind a completion is attended to",
        "models/backbones/encode.py",
        "mask[i, start:end] = 1",
        "mask[i, start:] = 1",
        ("models/test_more_families.py", "models/test_families.py"),
    ),
    # --- readers
    Mutant(
        "of epochs with one stop loss, the last is restored",
        "readers/_network.py",
        "if watched < best_loss:",
        "if watched <= best_loss:",
        ("readers/test_network.py", "readers/test_saplma.py"),
    ),
    Mutant(
        "early stopping waits an epoch longer",
        "readers/_network.py",
        "while epoch < settings.max_epochs and epoch - best_epoch < settings.patience:",
        "while epoch < settings.max_epochs and epoch - best_epoch <= settings.patience:",
        ("readers/test_network.py", "readers/test_psr.py"),
    ),
    # --- data
    Mutant(
        "a donor may show the same pixels",
        "data/candidates.py",
        "keys = [frozenset((image, -pixel, *forms)) for image, pixel, forms in zip(images, pixels, golds, strict=True)]",
        "keys = [frozenset((image, *forms)) for image, pixel, forms in zip(images, pixels, golds, strict=True)]",
        ("data/test_donors.py", "stages/test_pair_donors.py"),
    ),
    # --- grading
    Mutant(
        "two answer blocks are one",
        "grading/parse.py",
        "if text.count(opening) != 1 or text.count(closing) != 1:",
        "if text.count(opening) < 1 or text.count(closing) < 1:",
        ("grading/test_parse.py", "own/test_log_confidences.py"),
    ),
    # --- evaluation
    Mutant(
        "a tie counts 1 in AUROC",
        "evaluation/metrics/discrimination.py",
        'below, through = np.searchsorted(wrong, right, side="left"), np.searchsorted(wrong, right, side="right")',
        'below, through = np.searchsorted(wrong, right, side="right"), np.searchsorted(wrong, right, side="right")',
        ("evaluation/metrics/test_discrimination.py", "evaluation/metrics/test_any_confidences.py"),
    ),
    Mutant(
        "Bonferroni in place of Holm",
        "evaluation/statistics/p_values.py",
        "own = min(1.0, (len(order) - rank) * value)",
        "own = min(1.0, len(order) * value)",
        ("evaluation/statistics/test_p_values.py", "evaluation/test_contrasts.py"),
    ),
    # --- store
    Mutant(
        "the version of Python leaves the key",
        "store/key.py",
        'FIELDS = ("stage", "code", "spec", "inputs", "packages", "python")',
        'FIELDS = ("stage", "code", "spec", "inputs", "packages")',
        ("store/test_manifest.py", "store/test_messages.py"),
    ),
    # --- declared
    Mutant(
        "a setting that is not known is ignored",
        "declared/base.py",
        'model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)',
        'model_config = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=False, defer_build=True)',
        ("study/test_config_settings.py", "study/test_config.py"),
    ),
)
