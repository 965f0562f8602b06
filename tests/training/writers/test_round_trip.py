"""The loader of each real data set reads what the writer of its format wrote, and every row agrees with its scene.

Writer and loader implement the same official format independently. `phantoms.questions.ask` gives the true answers.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests import specs
from tests.hospital import table_of

from dualread import plugins
from dualread.data.datasets.base import load
from dualread.data.images import open_image
from dualread.grading.canonical import canonical, question_key
from dualread.models.prompts import shows_options
from dualread.schema.data import PairDonorsSpec
from dualread.stages import draw_phantom, pair_donors
from dualread.training.phantoms import reports
from dualread.training.phantoms.questions import SceneQuestion, ask
from dualread.training.phantoms.scene import Style
from dualread.training.writers import (
    base,
    medframeqa,
    omnimedvqa,
    openi,
    path_vqa,
    pmc_vqa,
    rexgradient,
    rexvqa,
    vqa_med_2019,
    vqa_rad,
)
from dualread.training.writers.base import Case, Hospital, cases, questions


@dataclass(frozen=True, kw_only=True)
class Format:
    """A phantom hospital in one format, and what the loader of the format should return for it.

    Attributes:
        hospital: The hospital; its name is that of the format.
        cases_by_image: Returns the case of each image, by the `image_name` of its rows.
        dropped: Returns how many rows each step of the loader's audit should drop, given the folder.
        asked: Returns the questions about a case in the wording of the format, besides those of the SLAKE writer.
        answer_type: Returns the answer type of a question in this format.
        modality: What the loader should record for each modality of a scene; None if it records nothing.
        settings: Settings of the loader.
        n_rows: Number of rows that are kept; None if it depends on the draw.
    """

    hospital: Hospital
    cases_by_image: Callable[[Hospital], Mapping[str, Case]]
    dropped: Callable[[Path], Mapping[str, int]]
    asked: Callable[[Case], list[SceneQuestion]] = lambda case: ask(case.scene)
    answer_type: Callable[[SceneQuestion], str] = lambda question: question.answer_type
    modality: Mapping[str, str] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    n_rows: int | None = None


def _hospital(name, images, questions_per_image, **style):
    style = Style(**style)
    return Hospital(name=name, seed=0, images=images, size=32, questions_per_image=questions_per_image, style=style)


def _slake_rows_in_chinese(folder):
    rows = json.loads((folder / "test.json").read_text(encoding="utf-8"))
    return {"language": sum(row["q_lang"] == "zh" for row in rows)}


def _omnimedvqa_damaged(folder):
    tables = (folder / "QA_information" / "Open-access").glob("*.json")
    rows = [row for table in tables for row in json.loads(table.read_text(encoding="utf-8"))]
    two = [row for row in rows if "option_C" not in row]
    unmatched = [row for row in rows if row["gt_answer"] == "Not recorded" and row not in two]
    assert two
    assert unmatched
    return {"four options": len(two), "distinct options": 0, "gold option": len(unmatched)}


def _path_vqa_cases(hospital):
    # Images without a name are identified by the bytes that the writer made.
    return {hashlib.sha256(path_vqa._image(case, hospital)).hexdigest()[:16]: case for case in cases(hospital)}


def _shown_frames(case, hospital):
    frames = [base.png(picture) for picture in medframeqa.pictures(case, hospital)]
    return " + ".join(hashlib.sha256(frame).hexdigest()[:16] for frame in frames)


def _report(case, name):
    text = "\n".join(reports.sentences(case.scene, name, 0, case.image_id))
    parts = {"content_family": None, "answer_type": "open", "evidence": "", "wrong_answers": (), "options": ()}
    return [SceneQuestion(question=reports.INSTRUCTION, answer=text, **parts)]


def _chest(hospital):
    return replace(hospital, style=replace(hospital.style, modalities={"x-ray": 1.0}, regions={"chest": 1.0}))


def _open_or_closed(question):
    return "closed" if question.answer in ("yes", "no") else "open"


# fmt: off
FORMATS = {
    "slake": Format(hospital=_hospital("slake", {"train": 8, "validation": 2, "test": 6}, 8),
        cases_by_image=lambda h: {f"xmlab{case.image_id}": case for case in cases(h)}, dropped=_slake_rows_in_chinese,
        modality={"ct": "ct", "mri": "mri", "x-ray": "x-ray"}, settings={"language": "en"}, n_rows=48),
    "vqa_rad": Format(hospital=_hospital("vqa_rad", {"train": 6, "test": 10}, 6),
        cases_by_image=lambda h: {f"synpic{c.image_id}.jpg": c for c in base.cases_of(h, 10000)},
        dropped=lambda folder: {"layout": 0, "exact repetitions": 1, "official splits": 0},
        asked=lambda case: questions(case, vqa_rad.WORDING)),
    "path_vqa": Format(hospital=_hospital("path_vqa", {"test": 16}, 2, tint=(1.0, 0.7, 0.9)),
        cases_by_image=_path_vqa_cases, dropped=lambda folder: {"exact repetitions": 2},
        asked=lambda case: questions(case, path_vqa.WORDING), answer_type=_open_or_closed, n_rows=33),
    "pmc_vqa": Format(hospital=_hospital("pmc_vqa", {"test": 36}, 1, lesion_counts=(0.5, 0.5, 0, 0)),
        cases_by_image=lambda h: {f"PMC{case.image_id}_F1.jpg": case for case in cases(h)},
        dropped=lambda folder: {"option labels": 0, "four options": 3, "distinct options": 3, "gold option": 0},
        asked=lambda case: questions(case, pmc_vqa.WORDING), answer_type=_open_or_closed, n_rows=30),
    "omnimedvqa": Format(hospital=_hospital("omnimedvqa", {"test": 60}, 1),
        cases_by_image=lambda h: {omnimedvqa._path(case): case for case in cases(h)}, dropped=_omnimedvqa_damaged,
        asked=lambda case: questions(case, omnimedvqa.WORDING), answer_type=lambda question: "closed",
        modality={name: text.lower() for name, text in omnimedvqa._MODALITY.items()}),
    "rexvqa": Format(hospital=_hospital("rexvqa", {"test": 20}, 2),
        cases_by_image=lambda h: {rexvqa._paths(case)[0]: case for case in cases(_chest(h))},
        dropped=lambda folder: {"four options": 0, "distinct options": 0, "gold option": 0},
        asked=lambda case: questions(case, rexvqa.WORDING), answer_type=lambda question: "closed",
        modality={"x-ray": "x-ray"}, n_rows=40),
    "medframeqa": Format(hospital=_hospital("medframeqa", {"test": 24}, 2),
        cases_by_image=lambda h: {_shown_frames(case, h): case for case in cases(h)},
        dropped=lambda folder: {"gold option": 8}, asked=medframeqa.asked, answer_type=lambda question: "closed",
        modality={name: name for name in ("ct", "mri", "x-ray")}, n_rows=40),
    "mimic_cxr": Format(hospital=_hospital("mimic_cxr", {"train": 8, "validation": 4, "test": 24}, 1),
        cases_by_image=lambda h: {f"d{case.image_id}": case for case in cases(h)},
        dropped=lambda folder: {"images": 0, "reference report": 0}, asked=lambda case: _report(case, "mimic_cxr"),
        modality=dict.fromkeys(("ct", "mri", "x-ray"), "x-ray"), n_rows=24),
    "rexgradient": Format(hospital=_hospital("rexgradient", {"train": 4, "test": 24}, 1),
        cases_by_image=lambda h: {" + ".join(rexgradient.paths(case)): case for case in cases(h)},
        dropped=lambda folder: {"images": 0, "reference report": 0}, asked=lambda case: _report(case, "rexgradient"),
        modality=dict.fromkeys(("ct", "mri", "x-ray"), "x-ray"), n_rows=24),
    "openi": Format(hospital=_hospital("openi", {"test": 36}, 1), settings={"shares": {"test": 1.0}},
        cases_by_image=lambda h: {" + ".join(openi.image_names(case)): case for case in cases(h)},
        dropped=lambda folder: {"split test": 0, "images": 4, "reference report": 4},
        asked=lambda case: _report(case, "openi"), modality=dict.fromkeys(("ct", "mri", "x-ray"), "x-ray"), n_rows=28),
    "vqa_med_2019": Format(hospital=_hospital("vqa_med_2019", {"test": 40}, 1),
        cases_by_image=lambda h: {f"synpic{c.image_id}": c for c in base.cases_of(h, 60000)},
        dropped=lambda folder: {"images of VQA-RAD": 0}, asked=lambda case: questions(case, vqa_med_2019.WORDING),
        answer_type=_open_or_closed, n_rows=44),
}
# fmt: on


@pytest.fixture(scope="module", params=FORMATS)
def read(request, tmp_path_factory):
    """Return the format, the folder of its official files, and what the loader returns for the test split."""
    form = FORMATS[request.param]
    draw_phantom.compute(_phantom(request.param), {}, folder := tmp_path_factory.mktemp(request.param))
    return form, folder, load(plugins.load("datasets", request.param), folder, "test", form.settings)


def _phantom(name):
    hospital = FORMATS[name].hospital
    style = {key: value for key, value in vars(hospital.style).items() if value != getattr(Style(), key)}
    given = {"images": hospital.images, "questions_per_image": hospital.questions_per_image, "style": style}
    return specs.phantom(name, name=name, **given)


def _truth(form: Format, case: Case, row) -> SceneQuestion:
    """Return the question about the case that the row asks, whether or not its text contains the options."""
    key = question_key(row.question.split("\n")[0])
    known = [*form.asked(case), *ask(case.scene)]
    (found,) = {canonical(q.answer): q for q in known if question_key(q.question) == key}.values()
    return found


def _shown(truth: SceneQuestion, answer: str, gold: str) -> str:
    """Return an option as the row spells it: PMC-VQA writes NA for the answer that there is no lesion."""
    return "na" if gold == "na" and answer == truth.answer else canonical(answer)


def test_every_row_says_what_its_scene_says(read):
    form, _, loaded = read
    by_image = form.cases_by_image(form.hospital)
    assert loaded.rows
    for row in loaded.rows:
        case = by_image[row.image_name]
        truth = _truth(form, case, row)
        golds = {canonical(reference) for reference in row.reference_answers}
        gold = "na" if golds == {"na"} else canonical(truth.answer)
        assert gold in golds, row
        assert (gold == "na") <= (truth.answer == "none"), row
        if row.options:
            others = truth.options or ("yes", "no", "cannot be determined", "not applicable")
            assert [canonical(option) for option in row.options] == [_shown(truth, o, gold) for o in others], row
            assert set(row.reference_answers) <= set(row.options), row
        assert row.answer_type == form.answer_type(truth), row
        assert row.modality == (form.modality[case.scene.modality] if form.modality else None), row


def test_what_was_planted_is_dropped_and_nothing_else(read):
    form, folder, loaded = read
    assert {step.step: step.dropped for step in loaded.audit} == form.dropped(folder)
    assert form.n_rows is None or len(loaded.rows) == form.n_rows
    assert loaded.audit[-1].kept == len(loaded.rows)


def test_multiple_choice_shows_four_options_and_the_others_none(read):
    form, _, loaded = read
    n_options = {len(row.options) for row in loaded.rows}
    assert n_options == ({4} if form.hospital.name in ("pmc_vqa", "omnimedvqa", "rexvqa", "medframeqa") else {0})
    # Every third question of ReXVQA holds its options: 0, 3, ..., 39 of 40.
    inline = [row for row in loaded.rows if shows_options(row.question, row.options)]
    assert len(inline) == (14 if form.hospital.name == "rexvqa" else 0)


def test_every_image_is_that_of_its_case(read):
    form, _, loaded = read
    by_image = form.cases_by_image(form.hospital)
    images = {row.image_name: [picture.source for picture in row.images] for row in loaded.rows}
    assert len(images) == len({tuple(of_row) for of_row in images.values()})
    shown_at = -1 if form.hospital.name == "medframeqa" else 0  # of several images
    for name, image in ((name, of_row[shown_at]) for name, of_row in images.items()):
        drawn = base.picture_of(by_image[name], form.hospital)
        shown = open_image(image)
        left, top = (shown.width - drawn.width) // 2, (shown.height - drawn.height) // 2  # PMC-VQA's margin
        shown = shown.crop((left, top, left + drawn.width, top + drawn.height))
        difference = np.asarray(shown.convert("L"), float) - np.asarray(drawn.convert("L"), float)
        assert np.abs(difference).mean() < 5, name  # after JPEG and CMYK; different cases differ by 13 or more


@pytest.mark.parametrize("name", ["vqa_rad", "path_vqa", "vqa_med_2019", "medframeqa", "mimic_cxr"])
def test_donor_pairs_exist_where_the_paper_has_them(name, tmp_path):
    manifest = table_of(tmp_path, _phantom(name), specs.manifest(name, roles="ood"))
    (tmp_path / "pairs").mkdir()
    pair_donors.compute(
        PairDonorsSpec(dataset="slake", split="test", match_on=[]), {"manifest": manifest}, tmp_path / "pairs"
    )
    assert pl.read_parquet(tmp_path / "pairs" / "pairs.parquet").height > 10
