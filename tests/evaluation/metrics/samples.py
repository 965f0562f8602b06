"""Random cells with many ties, as verbalized confidences have them."""

import numpy as np
from hypothesis import strategies as st

LEVELS = [0.0, 0.05, 0.2, 0.4, 0.5, 0.6, 0.8, 0.9, 0.95, 1.0]

cells = st.integers(1, 60).flatmap(
    lambda n: st.tuples(
        st.lists(st.one_of(st.sampled_from(LEVELS), st.floats(0.0, 1.0)), min_size=n, max_size=n).map(np.array),
        st.lists(st.booleans(), min_size=n, max_size=n).map(lambda z: np.array(z, dtype=bool)),
    )
)


def two_classes(cell):
    return cell[1].any() and not cell[1].all()


def turned(random, *columns):
    """Return the columns with their rows in another order."""
    order = random.sample(range(len(columns[0])), len(columns[0]))
    return [np.asarray(column)[order] for column in columns]
