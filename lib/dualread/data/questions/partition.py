"""Give every cluster of images (an image, or those of a patient), and with it all its questions, one role.

The clusters are sorted by the sha256 of (seed, cluster id), and the sorted list is cut at the cumulative fractions. So
the order depends on the seed and the names only, neither on the order of the rows nor on a random number generator.
"""

import hashlib
from collections.abc import Iterable, Mapping
from fractions import Fraction

from dualread.errors import ConfigError, DataError, did_you_mean

# The list is cut in this order, because the order of the keys in a configuration must not matter.
ROLES = ("fit", "stop", "calibration", "validation", "test", "ood")


def assign_roles(cluster_ids: Iterable[str], roles: str | Mapping[str, float], seed: int) -> dict[str, str]:
    """Return the role of every cluster id.

    Args:
        cluster_ids: Identities of the clusters; repetitions are ignored.
        roles: One role for all clusters, or the fraction of the clusters in each role.
        seed: Determines the order of the clusters.

    Raises:
        ConfigError: A role is unknown, a fraction is not in (0, 1], or the fractions do not add up to 1.
        DataError: There are so few clusters that a role would get none.
    """
    unique = sorted(set(cluster_ids))
    if isinstance(roles, str):
        return dict.fromkeys(unique, _known(roles))
    fractions = _fractions(roles)
    ordered = sorted(unique, key=lambda cluster_id: hashlib.sha256(f"{seed}\x1f{cluster_id}".encode()).digest())
    assigned, start, reached = {}, 0, Fraction(0)
    for role, fraction in fractions.items():
        reached += fraction
        end = int(reached * len(ordered) + Fraction(1, 2))  # nearest, halves up
        if end == start:
            raise DataError(
                f"roles.{role}: {float(fraction):g} of {len(ordered)} images, or patients, is none. Increase the"
                " fraction."
            )
        assigned |= dict.fromkeys(ordered[start:end], role)
        start = end
    return assigned


def _fractions(roles: Mapping[str, float]) -> dict[str, Fraction]:
    for role, value in roles.items():
        _known(role)
        if not 0 < value <= 1:
            raise ConfigError(f"roles.{role}: {value!r} is not a fraction in (0, 1]. Remove the role or correct it.")
    # Converted by way of the decimal notation, because 0.7 + 0.1 + 0.2 is not 1 in binary floats.
    fractions = {role: Fraction(str(roles[role])) for role in ROLES if role in roles}
    if sum(fractions.values()) != 1:
        raise ConfigError(
            f"roles: the fractions {dict(roles)} add up to {float(sum(fractions.values())):g}, expected 1."
        )
    return fractions


def _known(role: str) -> str:
    if role not in ROLES:
        raise ConfigError(f"roles: no role named {role!r}. Known: {', '.join(ROLES)}.{did_you_mean(role, ROLES)}")
    return role
