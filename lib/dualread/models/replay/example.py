"""What the replay reads of two made-up completions; it tells readers that were fitted on states read in another way."""

from dualread.models.replay.forward import VECTORS, vectors_of
from dualread.models.replay.positions import locate

_END = "<end>"
# One with an answer block whose tags are split among tokens, and one without.
_COMPLETIONS = (
    ("<think>", "a shadow", "</think>", "<ans", "wer>", " the", " left", " lung", "</answ", "er>", _END, _END),
    ("I", " see", " no", " shadow", ".", _END),
)


def read_of_example() -> dict[str, list[float]]:
    """Return each of `VECTORS` of one completion and then of the other, for states of width 3; with three decimals."""
    import torch

    def states(n: int, factor: int) -> torch.Tensor:
        return (torch.arange(3 * n) * factor % 17 - 8).reshape(n, 3) / 4

    reading: dict[str, list[float]] = {name: [] for name in VECTORS}
    for tokens in _COMPLETIONS:
        ends = {i for i, token in enumerate(tokens) if token == _END}
        at = locate(range(len(tokens)), lambda ids, tokens=tokens: "".join(tokens[i] for i in ids), ends)
        read = vectors_of(states(1 + len(tokens), 5), states(len(tokens), 7), states(9, 11), at, kappa=0.5)
        for name in VECTORS:
            reading[name] += [round(value, 3) for value in read[name].tolist()]
    return reading
