"""What is recorded of how states are read: the rules of the positions, and what is read of a made-up example.

A reader of states that were read otherwise is refused.
"""

import math

from dualread.models.replay.positions import locate

# Stored with every feature artifact and every reader, for users who have to read states at the same positions.
RULES = {
    "t_prompt": "last non-padding prompt token",
    "t_close": "completion token that holds the last character of </answer>; the last token where there is no block",
    "answer": "completion tokens with any character inside the answer, tags and outer white space excluded; all tokens "
    "where there is no block",
    "image": "image placeholder tokens",
    "last": "last completion token that is not a stop token; the last token where there is no other",
}
# Of the claims of a report, in the place of these.
RULES_OF_CLAIMS = {
    "t_prompt": "token before the claim's first one; the last prompt token where the claim begins the completion",
    "t_close": "last token of the claim",
    "answer": "completion tokens with any character inside the claim",
    "image": RULES["image"],
    "last": "last token of the claim",
}


def rules(thinking_ends: str | None, *, of_claims: bool = False) -> dict[str, str]:
    """Return `RULES`, or those of claims, and where completions think, what holds besides."""
    known = RULES_OF_CLAIMS if of_claims else RULES
    if thinking_ends is None:
        return known
    think = f"completion token that holds the last character of the last {thinking_ends}; answers come after it"
    return known | {"think": think}


_END = "<end>"
# One with an answer block whose tags are split among tokens, and one without.
_COMPLETIONS = (
    ("<think>", "a shadow", "</think>", "<ans", "wer>", " the", " left", " lung", "</answ", "er>", _END, _END),
    ("I", " see", " no", " shadow", ".", _END),
)


def read_of_example(thinking_ends: str | None = None) -> dict[str, list[float]]:
    """Return each of `VECTORS` of one completion and then of the other, for states of width 3; with three decimals.

    Where completions think (`thinking_ends` is not None), there is h_think of the first one besides.
    """
    import torch

    from dualread.models.replay.forward import VECTORS, vectors_of

    def states(n: int, factor: int) -> torch.Tensor:
        return (torch.arange(3 * n) * factor % 17 - 8).reshape(n, 3) / 4

    reading: dict[str, list[float]] = {name: [] for name in VECTORS}
    ends_here = "</think>" if thinking_ends else None
    for tokens in _COMPLETIONS:
        ends = {i for i, token in enumerate(tokens) if token == _END}
        at = locate(range(len(tokens)), lambda ids, tokens=tokens: "".join(tokens[i] for i in ids), ends, ends_here)
        read = vectors_of(states(1 + len(tokens), 5), states(len(tokens), 7), states(9, 11), at, kappa=0.5)
        for name, vector in read.items():
            reading.setdefault(name, []).extend(round(value, 3) for value in vector.tolist() if not math.isnan(value))
    return reading
