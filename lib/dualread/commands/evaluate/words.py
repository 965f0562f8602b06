"""Step 5, its words: what each metric means, how a number is written, and what is remarked on it."""

from collections.abc import Collection, Mapping

from dualread.commands.evaluate.metrics import UNDEFINED
from dualread.evaluation.answer_metrics import FEW_IMAGES, NOISE_FLOOR, WITH_PERCENTILES
from dualread.evaluation.metrics.calibration_chance import is_by_chance

# Printed by default.
SHORT = (
    *("accuracy", "auroc", "ece15", "squared_calibration_error", "brier", "aurc"),
    *("natural_ccg_auc", "strict_ccg_auc"),
)

MODEL = "calibrated confidences"  # of which answers are simulated, to say how many images are needed


def interval_text(row: Mapping) -> str:
    """Return the ends of an interval, `low` and `high` of a row; "" where there is none."""
    return "" if row["low"] is None else f"{number_text(row['low'])} to {number_text(row['high'])}"


def number_text(value: float | None) -> str:
    """Return a whole number without decimals, so that "1" means exactly 1, and other numbers with four."""
    return "-" if value is None else str(int(value)) if value.is_integer() else f"{value:.4f}"


def p_text(value: float | None, at_most: bool | None) -> str:
    """Return a p-value, with "<=" where the resamples can say no more."""
    return "-" if value is None else f"{'<=' if at_most else ''}{value:.3g}"


def remark_on(row: dict, cell: dict[tuple[str, str], dict]) -> str:
    """Return the remark on a metric: undefined resamples, or what the images of a CCG-AUC are enough for, and ties."""

    def estimate(name: str) -> float | None:
        return cell.get((row["method"], name), {}).get("estimate")

    if row["metric"] == "ece15":
        return _beside_chance(row["estimate"], estimate(NOISE_FLOOR))
    if not row["metric"].endswith("_ccg_auc"):
        few, undefined = few_of_a_kind(row["metric"], [row["method"]], cell), estimate(f"{row['metric']}{UNDEFINED}")
        return few or (f"{undefined:.0f} resamples undefined" if undefined else "")
    kind, remarks = row["metric"].removesuffix("_ccg_auc"), []
    prefix = "" if kind == "natural" else f"{kind}_"
    few = [
        f"{estimate(f'{prefix}{side}_images'):.0f} {side} images"
        for side in ("source", "donor")
        if estimate(f"{kind}_few_{side}s")
    ]
    if few:
        told = estimate(f"{kind}_detectable")
        enough = f"tells {told:.2f} from .5" if told else "tells nothing from .5"
        remarks.append(f"underpowered: only {' and '.join(few)}, {enough} (power .8)")
    if ties := estimate(f"{kind}_ties"):
        remarks.append(f"{ties:.0%} ties")
    return "; ".join(remarks)


def _beside_chance(ece: float, floor: float | None) -> str:
    """Return what the ECE says, beside what calibrated confidences reach."""
    if floor is None:
        return ""
    if is_by_chance(ece, floor):
        return f"not above {floor:.4f}, which calibrated confidences reach by chance"
    return f"above {floor:.4f}, which calibrated confidences rarely exceed by chance"


def few_of_a_kind(metric: str, methods: Collection[str], cell: Mapping[tuple[str, str], dict]) -> str:
    """Return which kind of answers is on few images only, for a metric that rests on both."""
    found = []
    for kind in ("right", "wrong"):
        counts = [cell[method, f"images_with_{kind}"]["estimate"] for method in methods if metric in WITH_PERCENTILES]
        if counts and min(counts) < FEW_IMAGES:
            found.append(f"{min(counts):.0f} image{'' if min(counts) == 1 else 's'} with {kind} answers")
    return f"only {' and '.join(found)}" if found else ""
