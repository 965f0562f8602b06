import hashlib
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dualread.data.questions.roles import assign_roles

ROLES = {"fit": 0.7, "stop": 0.1, "calibration": 0.2}


@given(st.sets(st.text(max_size=5), min_size=10), st.integers(0, 100), st.randoms())
def test_partition_covers_each_image_once_and_ignores_order(names, seed, random):
    shuffled = [*names, *names]
    random.shuffle(shuffled)
    reordered = dict(reversed(ROLES.items()))
    roles = assign_roles(shuffled, reordered, seed)
    assert roles == assign_roles(sorted(names), ROLES, seed)
    assert set(roles) == names
    for role, fraction in ROLES.items():
        # Each size is a difference of two rounded cumulative counts, so it is off by less than 1.
        assert abs(Counter(roles.values())[role] - fraction * len(names)) < 1 + 1e-9


def test_sizes_and_order_by_hand():
    # Five images: cuts after round(.6 * 5) = 3 and 5; ordered by sha256("3\x1f" + name).
    names = ["a", "b", "c", "d", "e"]
    ordered = sorted(names, key=lambda name: hashlib.sha256(b"3\x1f" + name.encode()).hexdigest())
    roles = assign_roles(names, {"stop": 0.4, "fit": 0.6}, 3)
    assert [name for name in ordered if roles[name] == "fit"] == ordered[:3]
    assert [name for name in ordered if roles[name] == "stop"] == ordered[3:]


def test_a_half_is_rounded_up():
    assert Counter(assign_roles("abcde", {"fit": 0.5, "stop": 0.5}, 0).values()) == {"fit": 3, "stop": 2}
