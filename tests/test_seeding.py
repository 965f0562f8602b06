import hashlib

import numpy as np

from dualread.seeding import derive_seed, generator


def test_a_seed_is_the_start_of_a_sha256():
    digest = hashlib.sha256(b"bootstrap\x1fslake\x1f17").hexdigest()
    assert derive_seed("bootstrap", "slake", 17) == int(digest[:8], 16)


def test_the_boundaries_of_names_matter():
    assert derive_seed("a", "bc") != derive_seed("ab", "c")
    assert derive_seed("a") != derive_seed("a", "")


def test_generators_do_not_share_state():
    first, second = generator("x"), generator("x")
    np.random.default_rng().random()
    assert first.random() == second.random()
    assert generator("x").random() != generator("y").random()
