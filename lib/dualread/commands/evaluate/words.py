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

METRICS = {
    "accuracy": "share of correct answers",
    "auroc": "probability that a correct answer has more confidence than a wrong one; .5 is chance",
    "within_question_auroc": "AUROC over pairs of answers to one question; .5 is chance",
    "ece15": "calibration error over 15 bins; lower is better",
    "ece15_noise_floor": "95% of calibrated confidences have a smaller ece15; the others reach it by chance",
    "squared_calibration_error": "squared calibration error without the part of chance; 0 if calibrated",
    "brier": "mean squared difference of confidence and correctness; lower is better",
    "aurc": "mean error rate of the k most confident answers, over all k; lower is better",
    "hce90": "share of all answers that are wrong with confidence .9 or more; lower is better",
    "calibration_in_the_large": "0 if confidence is right on average; negative if it is too high",
    "calibration_slope": "1 if calibrated; below 1 if confidences are too extreme",
    "natural_ccg_auc": "share of decisive pairs with more confidence on the right image; .5 is no response",
    "strict_ccg_auc": "natural_ccg_auc of the pairs whose two answers are equal; .5 is no response",
    "accuracy_real": "share of correct answers on the right images of pairs",
    "accuracy_donor": "share of correct answers on the donor images of pairs",
    "vrs": "accuracy_real minus accuracy_donor",
    "vbr": "share of pairs that are correct on the right image and wrong on the donor",
}
COUNTS = {
    "images_with_right": "images with right answers",
    "images_with_wrong": "images with wrong answers; AUROC and AURC rest on the fewer of the two",
    "decisive_pairs": "pairs that are correct on the right image and wrong on the donor",
    "source_images": "distinct right images of these pairs",
    "donor_images": "distinct donor images of these pairs",
    "strict_decisive_pairs": "those of the pairs with equal answers on both images",
    "strict_source_images": "distinct right images of the latter",
    "strict_donor_images": "distinct donor images of the latter",
    "natural_ties": "share of the decisive pairs with equal confidence on both images; each counts 1/2",
    "strict_ties": "share of strict_decisive_pairs with equal confidence on both images; each counts 1/2",
    "natural_few_sources": "1 if decisive pairs have fewer than 30 right images: too few for a conclusion",
    "natural_few_donors": "1 if they have fewer than 30 donor images",
    "natural_detectable": "the natural_ccg_auc that a sample like this tells from .5 with a probability of .8",
    "strict_few_sources": "1 if pairs with equal answers have fewer than 30 right images",
    "strict_few_donors": "1 if they have fewer than 30 donor images",
    "strict_detectable": "the strict_ccg_auc that a sample like this tells from .5 with a probability of .8",
}
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
