import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dualread.seeding import derive_seed, generator


def test_a_seed_is_the_start_of_a_sha256():
    digest = hashlib.sha256(b"bootstrap\x1fslake\x1f17").hexdigest()
    assert derive_seed("bootstrap", "slake", 17) == int(digest[:8], 16)


@given(st.lists(st.text(alphabet="ab1", max_size=3) | st.integers(0, 99), max_size=4))
def test_every_library_accepts_a_seed(names):
    assert 0 <= derive_seed(*names) < 2**32
    assert derive_seed(*names) == derive_seed(*names)


def test_the_boundaries_of_names_matter():
    assert derive_seed("a", "bc") != derive_seed("ab", "c")
    assert derive_seed("a") != derive_seed("a", "")


def test_generators_do_not_share_state():
    first, second = generator("x"), generator("x")
    np.random.default_rng().random()
    assert first.random() == second.random()
    assert generator("x").random() != generator("y").random()
