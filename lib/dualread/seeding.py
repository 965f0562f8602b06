"""Seeds derived from names, so that results do not depend on the order or number of jobs, or on cores."""

import hashlib

import numpy as np


def derive_seed(*names: str | int) -> int:
    """Return an integer in [0, 2**32) that is a pure function of `names`.

    Names are joined with an ASCII unit separator, so ("a", "bc") and ("ab", "c") differ. The seed has 32 bits because
    all its users (numpy, torch, scikit-learn, transformers) accept that.
    """
    text = "\x1f".join(str(name) for name in names)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def generator(*names: str | int) -> np.random.Generator:
    """Return a new numpy generator (PCG64) seeded from `names`."""
    return np.random.Generator(np.random.PCG64(derive_seed(*names)))
