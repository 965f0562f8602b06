"""Masks that are computed for all tokens at once are those that a loop over pairs of tokens gives."""

import pytest
import torch
from transformers import masking_utils

from dualread.models.backbones import parts

BLOCKS = torch.tensor([[-1, 0, 0, -1, 1, 1], [0, 0, 0, -1, -1, -1]])
LEFT = torch.tensor([0, 2])
TABLE = torch.tensor([[False, False], [True, False], [False, False], [True, True], [False, True], [False, False]])
PADDING = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1]], dtype=torch.bool)
CAUSAL = masking_utils.causal_mask_function


def gemma(batch, head, query, key):
    """The pattern of Gemma 3's layers with a sliding window: tokens of one image see each other."""
    causal_or_image = masking_utils.or_masks(CAUSAL, masking_utils.blockwise_overlay(BLOCKS))
    return masking_utils.and_masks(causal_or_image, masking_utils.sliding_window_overlay(3))(batch, head, query, key)


PATTERNS = {
    "an image block in a window": gemma,
    "the same, made of functions": masking_utils.and_masks(
        masking_utils.or_masks(CAUSAL, masking_utils.blockwise_overlay(BLOCKS)), masking_utils.sliding_window_overlay(2)
    ),
    "chunks": masking_utils.and_masks(CAUSAL, masking_utils.chunked_overlay(2, LEFT)),
    # For all tokens at once, `any` would ask for any of all rows.
    "more than a pair": lambda batch, head, query, key: TABLE[key].any() & (key <= query),
    # For all tokens at once, it is an error.
    "no tensors": lambda batch, head, query, key: TABLE[key][0] | (query.reshape(()) == key),
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize(("queries", "offset"), [(6, 0), (2, 4)])
def test_every_pair_of_tokens_by_itself(name, queries, offset):
    parts.compute_masks_at_once()
    pattern, numbers = PATTERNS[name], [torch.tensor(i) for i in range(6)]
    expected = torch.tensor(
        [
            [[[pattern(b, numbers[0], q, k) & PADDING[b, k] for k in numbers] for q in numbers[offset:]]]
            for b in numbers[:2]
        ]
    )
    given = {"mask_function": pattern, "attention_mask": PADDING, "use_vmap": True, "allow_is_causal_skip": False}
    for _ in range(3):  # the first time, both ways are compared
        found = masking_utils.sdpa_mask(2, queries, 6, offset, **given)
        assert found is not None
        assert found.shape == (2, 1, queries, 6)
        assert torch.equal(found, expected)


def test_a_pattern_is_computed_at_once_after_the_first_time(monkeypatch):
    monkeypatch.setattr(masking_utils, "_vmap_expansion_sdpa", counted(calls := []))
    parts.compute_masks_at_once()
    for _ in range(3):
        masking_utils.sdpa_mask(2, 6, 6, mask_function=gemma, use_vmap=True, allow_is_causal_skip=False)
    assert len(calls) == 1
    for _ in range(3):
        more = PATTERNS["more than a pair"]
        masking_utils.sdpa_mask(2, 6, 6, mask_function=more, use_vmap=True, allow_is_causal_skip=False)
    assert len(calls) == 4


def counted(calls):
    """Return transformers' own way to compute masks, which notes in `calls` when it does."""

    def expansion(pattern):
        for dims in [(None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)]:
            pattern = torch.vmap(pattern, in_dims=dims, out_dims=0)
        return lambda *positions: calls.append(1) or pattern(*positions)

    return expansion
