"""Slow literal references: the definitions written out, for tests only."""

from fractions import Fraction
from itertools import pairwise, permutations

from dualread.seeding import generator


def auroc(confidence, correct):
    wins = [
        Fraction(1) if c_right > c_wrong else Fraction(1, 2) if c_right == c_wrong else Fraction(0)
        for c_right, right in zip(confidence, correct, strict=True)
        if right
        for c_wrong, other in zip(confidence, correct, strict=True)
        if not other
    ]
    return float(sum(wins) / len(wins))


def within_question_auroc(confidence, correct, keys):
    rows = list(zip(confidence, correct, keys, strict=True))
    wins = [
        1.0 if a > b else 0.5 if a == b else 0.0
        for a, right, key in rows
        if right
        for b, other, other_key in rows
        if not other and other_key == key
    ]
    return sum(wins) / len(wins)


def ece(confidence, correct, n_bins=15):
    total = 0.0
    for k in range(n_bins):
        last = k == n_bins - 1
        members = [
            (c, z)
            for c, z in zip(confidence, correct, strict=True)
            if c >= k / n_bins and (c < (k + 1) / n_bins or last)
        ]
        total += abs(sum(z for _, z in members) - sum(c for c, _ in members))
    return total / len(confidence)


def aurc_over_orders(confidence, correct):
    """Average, over every order that sorts by confidence, of the area under the risk-coverage curve."""
    n = len(confidence)
    areas = []
    for order in permutations(range(n)):
        if any(confidence[a] < confidence[b] for a, b in pairwise(order)):
            continue
        risks = [Fraction(sum(not correct[i] for i in order[:k]), k) for k in range(1, n + 1)]
        areas.append(sum(risks) / n)
    return float(sum(areas) / len(areas))


def aurc(confidence, correct):
    """The expected risk at each k, block by block."""
    n, above, errors_above, total = len(confidence), 0, 0, 0.0
    for level in sorted(set(confidence), reverse=True):
        block = [not z for c, z in zip(confidence, correct, strict=True) if c == level]
        for j in range(1, len(block) + 1):
            total += (errors_above + sum(block) * j / len(block)) / (above + j)
        above, errors_above = above + len(block), errors_above + sum(block)
    return total / n


def best_aurc(correct):
    """The AURC of the order in which all wrong rows come last, risk by risk."""
    order = sorted(correct, reverse=True)
    return sum(Fraction(k - sum(map(int, order[:k])), k) for k in range(1, len(order) + 1)) / len(order)


def ece_equal_mass(confidence, correct, n_bins=15):
    """Each row goes into the bin of the middle of all rows with its confidence."""
    n, gaps = len(confidence), [0.0] * n_bins
    for c, z in zip(confidence, correct, strict=True):
        below, same = sum(other < c for other in confidence), sum(other == c for other in confidence)
        gaps[int(n_bins * (Fraction(below) + Fraction(same - 1, 2)) / n)] += z - c
    return sum(map(abs, gaps)) / n


def ccg_auc(rows, *, strict):
    """Rows are (confidence_real, confidence_donor, correct_real, correct_donor, canonical_real, canonical_donor)."""
    chosen = [
        r for r in rows if r[2] and not r[3] and (not strict or (r[4] is not None and r[4] != "" and r[4] == r[5]))
    ]
    return sum(1.0 if r[0] > r[1] else 0.5 if r[0] == r[1] else 0.0 for r in chosen) / len(chosen)


def p_of_bets(losses, target_risk, most):
    """1 over the largest capital of bets on one image after another, whose answers or reports have these losses."""
    names = sorted(losses)
    places = generator("order of the bets", len(names)).permutation(len(names)).tolist()
    largest = 1.0
    for k, share in enumerate((1 / 2, 1 / 8, 1 / 8, 1 / 8, 1 / 8)):
        wealth = share
        for _, name in sorted(zip(places, names, strict=True)):
            balance = sum(losses[name]) - target_risk * len(losses[name])
            wealth *= 1 - balance / (2**k * (1 - target_risk) * most)
            largest = max(largest, wealth)
    return 1 / largest
