"""Seeds derived from names, so that no result depends on job order, on cores or on which other jobs exist."""

import hashlib

import numpy as np


def derive_seed(*names: str | int) -> int:
    """Return an integer in [0, 2**32) that is a pure function of `names`.

    Names are joined with an ASCII unit separator, so ("a", "bc") and ("ab", "c") differ. 32 bits, because
    that is what every consumer (numpy, torch, scikit-learn, transformers) accepts.
    """
    text = "\x1f".join(str(name) for name in names)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def generator(*names: str | int) -> np.random.Generator:
    """Return a numpy generator (PCG64) seeded from `names`; never global state."""
    return np.random.Generator(np.random.PCG64(derive_seed(*names)))
