"""How readers use torch: on the CPU, one thread, every random number from a generator of their own."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: sums then have one order, and small layers run faster than on contending threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def affine(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return x weight^T + bias as float64 [n, K], for x [n, D], weight [K, D] and bias [K].

    `einsum` and not a matrix product: a row's value must not depend on which other rows are scored with it.
    """
    return np.einsum("nd,kd->nk", x, weight.astype(np.float64)) + bias.astype(np.float64)
