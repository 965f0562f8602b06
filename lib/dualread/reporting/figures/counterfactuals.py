"""Qualitative examples of confidence grounding, as the paper's fig:grounding, chosen by a rule and not by hand.

The examples are decisive pairs of the first seed: the answer is correct on the source image and incorrect on the donor
image. Shown are the pairs with the greatest, the median and the smallest drop in the confidence of the first listed
method; pairs with equal drops are in the order of sample_id. One page per backbone, with one row of examples where the
answer changes (natural) and one where it stays the same (strict).
"""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from PIL.Image import Image

from dualread.data.images import open_image
from dualread.evaluation.metrics.grounding import decisive, strict_decisive
from dualread.reporting.figures.drawing import COLORS, TEXT_WIDTH, Drawing
from dualread.schema.tables import FigureLayout, Labeled

READS = "pairs"
OF_PROBABILITIES = True

_KINDS = {"natural": "Natural: another answer on the donor image", "strict": "Strict: the same answer on both images"}
_CASES = ("greatest", "median", "smallest")
_SIDES = {"real": "source", "donor": "donor"}
_READING = (
    "Bars: confidence in the answer above them; 0.5 where the method states none. Shown per kind: the pairs with the "
    "greatest, the median and the smallest drop\nin the confidence of {method} from the source image, where the answer "
    "is correct, to the donor image, where it is incorrect.\nA negative drop is a rise. First seed."
)
_PLACE = ("study", "backbone", "kind", "case")
_CSV = {
    **dict.fromkeys((*_PLACE, "dataset", "sample_id", "source_image_id", "donor_image_id", "question"), pl.String),
    **dict.fromkeys((f"{what}_{side}" for side in _SIDES for what in ("canonical_answer", "reference")), pl.String),
    **{"seed": pl.Int64, "method": pl.String, "confidence_real": pl.Float64, "confidence_donor": pl.Float64},
}


def draw(tables: Mapping[str, pl.DataFrame], layout: FigureLayout) -> Drawing:
    """Return one page per backbone: two rows of at most three examples, which the drop of the first method chooses.

    `pairs` has backbone, method, dataset, seed; the columns of `dualread.evaluation.join.Joined.pairs`; question; and
    with the suffixes _real and _donor reference (gold answers) and images (paths).
    """
    pairs = tables["pairs"]
    pages = [_page(pairs.filter(backbone=backbone.name), backbone, layout) for backbone in layout.backbones]
    values = pl.concat(page.values for page in pages)
    return Drawing(figure=pages[0].figure, values=values, further=[page.figure for page in pages[1:]])


def choose(pairs: pl.DataFrame) -> dict[tuple[str, str], dict]:
    """Return the pair for each (kind, case) among one method's pairs. With fewer than three, none occurs twice."""
    natural = decisive(pairs["correct_real"], pairs["correct_donor"])
    answers = [pairs[f"canonical_answer_{side}"].to_list() for side in _SIDES]
    strict = strict_decisive(pairs["correct_real"], pairs["correct_donor"], *answers)
    cases = {}
    for kind, mask in (("natural", natural & ~strict), ("strict", strict)):
        drop = (pl.col("confidence_real") - pl.col("confidence_donor")).alias("drop")
        ordered = pairs.filter(mask).with_columns(drop).sort("drop", "sample_id", descending=[True, False])
        places = {0: "greatest", len(ordered) - 1: "smallest", (len(ordered) - 1) // 2: "median"}
        if len(ordered) < 3:
            places = dict(zip(range(len(ordered)), ("greatest", "smallest"), strict=False))
        cases |= {(kind, case): ordered.row(place, named=True) for place, case in places.items()}
    return cases


def _page(pairs: pl.DataFrame, backbone: Labeled, layout: FigureLayout) -> Drawing:
    methods, rows = layout.methods, []
    examples = choose(pairs.filter(method=methods[0].name))
    figure = Figure(figsize=(TEXT_WIDTH, 4.6 + 0.3 * len(methods)), layout="constrained")
    figure.suptitle(backbone.label, fontweight="bold", parse_math=False)
    figure.supxlabel(_READING.format(method=methods[0].label), fontsize=5, parse_math=False)
    for block, (kind, heading) in zip(
        figure.subfigures(len(_KINDS), 1, squeeze=False)[:, 0], _KINDS.items(), strict=True
    ):
        block.suptitle(heading, fontsize=7)
        for part, case in zip(block.subfigures(1, len(_CASES), squeeze=False)[0], _CASES, strict=True):
            if (kind, case) not in examples:
                part.text(
                    0.5, 0.5, "no further pair" if (kind, "greatest") in examples else "no such pair", ha="center"
                )
                continue
            example = examples[kind, case]
            of_pair = pairs.filter(sample_id=example["sample_id"], dataset=example["dataset"])
            told = {method.label: of_pair.filter(method=method.name).row(0, named=True) for method in methods}
            _example(part, f"{case} drop ({example['drop']:z.2f})", told)
            place = dict(zip(_PLACE, (layout.study, backbone.name, kind, case), strict=True))
            rows += [{key: value for key, value in {**row, **place}.items() if key in _CSV} for row in told.values()]
    for row in rows:
        row |= {f"reference_{side}": " | ".join(row[f"reference_{side}"]) for side in _SIDES}
    return Drawing(figure=figure, values=pl.DataFrame(rows, schema=_CSV))


def _example(part: SubFigure, heading: str, told: Mapping[str, dict]) -> None:
    """Draw one pair: the question, both images with their answers, and each method's confidence in either answer."""
    pair = next(iter(told.values()))
    part.suptitle(f"{heading}\n{_wrapped(pair['question'], 44)}", fontsize=6, parse_math=False)
    grid = part.subplots(2, 2, height_ratios=[1.3, 0.3 * len(told)])
    for column, (side, name) in zip(grid.T, _SIDES.items(), strict=True):
        image, bars = column
        image.imshow(_side_by_side([open_image(Path(file)) for file in pair[f"images_{side}"]]))
        image.set_axis_off()
        answer = pair[f"canonical_answer_{side}"] or "(no valid answer)"
        verdict = "right" if pair[f"correct_{side}"] else f"wrong, gold: {pair[f'reference_{side}'][0]}"
        image.set_title(f"{_wrapped(f'{name}: {answer}', 20)}\n{_wrapped(verdict, 20)}", fontsize=6, parse_math=False)
        _bars(bars, {label: row[f"confidence_{side}"] for label, row in told.items()}, labelled=side == "real")


def _bars(axes: Axes, confidences: Mapping[str, float], *, labelled: bool) -> None:
    places = range(len(confidences))
    axes.barh(places, list(confidences.values()), height=0.6, color=COLORS[5], edgecolor="0.2", linewidth=0.5)
    for place, value in zip(places, confidences.values(), strict=True):
        axes.annotate(f"{value:.2f}", (value, place), (2, 0), textcoords="offset points", va="center", fontsize=6)
    axes.set(xlim=(0, 1.35), ylim=(len(confidences) - 0.5, -0.5), xticks=[0, 1], yticks=places)
    axes.set_yticklabels(confidences if labelled else [""] * len(confidences), parse_math=False)
    axes.tick_params(labelsize=6, length=2)


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(textwrap.shorten(text, 3 * width, placeholder=" ..."), width)


def _side_by_side(pictures: Sequence[Image]) -> Any:
    """Return the pictures beside each other, all as high as the first; a single one as it is."""
    if len(pictures) == 1:
        return pictures[0]
    height = pictures[0].height
    widths = [round(picture.width * height / picture.height) for picture in pictures]
    resized = (picture.resize((width, height)) for picture, width in zip(pictures, widths, strict=True))
    return np.hstack([np.asarray(picture) for picture in resized])
