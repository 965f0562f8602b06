"""How readers use torch: on the CPU, one thread, every random number from a generator of their own."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

# The length of einsum's buffer. It adds up a longer row piece by piece, but a row that is alone in one go, which rounds
# differently.
_BUFFER = 8192


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
    columns = [slice(start, start + _BUFFER) for start in range(0, x.shape[1], _BUFFER)]
    products = sum(np.einsum("nd,kd->nk", x[:, part], weight[:, part].astype(np.float64)) for part in columns)
    return products + bias.astype(np.float64)
