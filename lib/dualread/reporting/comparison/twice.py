"""The consistency of the paper: numbers that it prints twice, numbers that follow from others, and what its text says.

Nothing here depends on a study. Printed numbers are rounded to their last decimal; they agree if some numbers that
round to them agree.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dualread.reporting.tables.published import OOD_MEMBERS, Place, Printed, published_cells
from dualread.reporting.tables.values import Key

_TOLERANCE = 1e-9

# Contradictions that no printed number shows (the paper prints no validation cells, samples or losses).
IN_WORDS = (
    "BICR costs t + 2 rho in Table sc_tradeoff, and one replay in the text.",
    "SC@K costs Kt in Table sc_tradeoff, although it also needs the greedy answer that its samples are compared with.",
    "PSR's loss is class-weighted in the text and plain binary cross-entropy in the table of hyperparameters.",
    "Table paired prints DualRead minus RLCR in Brier as positive, a gain, though Brier falls, and P-Visual minus "
    "P-State in Brier as negative, a difference. We print differences as method minus baseline throughout; beside the "
    "paper's gains, on this page and in the CSV, ours have their sign changed.",
    "Table paired says OOD without naming the data sets. It is compared with our differences over OOD6 and on VQA-RAD.",
    "Table paired does not say whether its deviations are over bootstrap resamples or over seeds. Ours are over seeds.",
    "Where fewer than 30 source or donor images are decisive, the text reports an interval only; the tables print "
    "every CCG score, and no interval.",
    "The contract line of VL-Calibration's prompt is described as 110 characters wide, but has 111.",
)


@dataclass(frozen=True, kw_only=True)
class Twice:
    """One quantity that is printed in several tables with different numbers."""

    quantity: Key
    printed: Mapping[str, Printed]
    digits: int


@dataclass(frozen=True, kw_only=True)
class PublishedContrast:
    """A difference of Table paired beside those of the cells, in the direction of Table paired.

    Attributes:
        place: The cell of Table paired.
        printed: Its printed number.
        of_cells: Per data set, the differences between printed cells.
        fits: The data sets for which one of these equals the printed difference.
    """

    place: Place
    printed: Printed
    of_cells: Mapping[str, Sequence[float]]
    fits: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Sum:
    """A kind of number that follows from others in the tables.

    Attributes:
        name: Which numbers should be equal.
        n: How often the paper prints all that is needed to check.
        largest: The largest difference.
        broken: The places where rounding does not explain the difference.
    """

    name: str
    n: int
    largest: float
    broken: Sequence[str] = field(default_factory=list)


def printed_twice() -> tuple[int, list[Twice]]:
    """Return how many quantities several tables print, and those whose mean or deviation differs between tables."""
    found = {quantity: of_tables for quantity, of_tables in _by_quantity().items() if len(of_tables) > 1}
    differ = [
        Twice(quantity=quantity, printed=of_tables, digits=Place("", *quantity).digits)
        for quantity, of_tables in found.items()
        if len(set(of_tables.values())) > 1
    ]
    return len(found), differ


def contrasts() -> list[PublishedContrast]:
    """Return the differences of Table paired whose two values the paper prints too, with the differences of these."""
    cells, found = _by_quantity(), []
    for place, printed in published_cells().items():
        if place.table == "paired":
            method, baseline = place.method.split("-")
            metric, sign = place.metric.removeprefix("delta_"), -1 if place.is_gain else 1
            of_cells = {
                dataset: sorted({round(sign * (a.mean - b.mean), 3) for a in ones.values() for b in others.values()})
                for dataset in ("slake", *OOD_MEMBERS["ood6"], "ood6")
                if (ones := cells.get(Key(place.backbone, dataset, "all", method, metric)))
                and (others := cells.get(Key(place.backbone, dataset, "all", baseline, metric)))
            }
            fits = [name for name, of in of_cells.items() if any(_agree(printed.mean, x, 3 * 0.0005) for x in of)]
            if of_cells:
                found.append(PublishedContrast(place=place, printed=printed, of_cells=of_cells, fits=fits))
    return found


def sums() -> list[Sum]:
    """Return the kinds of numbers that follow from others, and where they do not."""
    cells = {place: printed.mean for place, printed in published_cells().items()}
    means = {quantity: next(iter(of_tables.values())).mean for quantity, of_tables in _by_quantity().items()}
    return [
        _sum("OOD6 = mean over its six domains", _means(means, "ood6"), 0.001),
        _sum("OOD CCG = mean over the three domains with donors", _means(means, "ood_ccg"), 0.001),
        _sum("VRS = real minus hard-negative accuracy", _differences(cells), 0.0015),
        _sum("paired CCG difference = DualRead minus token", _paired_ccg(cells), 0.0015),
        _sum("questions = open + closed", _questions(cells), 0.0),
    ]


def _by_quantity() -> dict[Key, dict[str, Printed]]:
    found: dict[Key, dict[str, Printed]] = defaultdict(dict)
    for place, printed in published_cells().items():
        found[place.quantity][place.table] = printed
    return found


def _agree(one: float, other: float, rounding: float) -> bool:
    return abs(one - other) <= rounding + _TOLERANCE


def _sum(name: str, found: Iterator[tuple[str, float, float]], rounding: float) -> Sum:
    rows = list(found)
    return Sum(
        name=name,
        n=len(rows),
        largest=max(abs(printed - other) for _, printed, other in rows),
        broken=[
            f"{what}: {printed:g} and {other:.4f}"
            for what, printed, other in rows
            if not _agree(printed, other, rounding)
        ],
    )


def _means(means: Mapping[Key, float], name: str) -> Iterator[tuple[str, float, float]]:
    members = OOD_MEMBERS[name]
    for key, mean in means.items():
        if key.dataset == name:
            of_domains = [means[key._replace(dataset=dataset)] for dataset in members]
            yield f"{key.backbone} {key.method} {key.metric}", mean, sum(of_domains) / len(members)


def _differences(cells: Mapping[Place, float]) -> Iterator[tuple[str, float, float]]:
    for place, mean in cells.items():
        if place.metric == "vrs":
            real, donor = (cells[place._replace(metric=f"accuracy_{name}")] for name in ("real", "hard_negative"))
            yield place.backbone, mean, real - donor


def _paired_ccg(cells: Mapping[Place, float]) -> Iterator[tuple[str, float, float]]:
    for place, mean in cells.items():
        if place.metric == "paired_delta":
            one, other = (place._replace(method=name, metric="natural_ccg_auc") for name in place.method.split("-"))
            yield place.backbone, mean, cells[one] - cells[other]


def _questions(cells: Mapping[Place, float]) -> Iterator[tuple[str, float, float]]:
    for place, mean in cells.items():
        if place.metric == "questions":
            kinds = [cells[place._replace(metric=f"{kind}_questions")] for kind in ("open", "closed")]
            yield place.dataset, mean, sum(kinds)
