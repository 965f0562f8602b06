"""What loaders of report data sets share: one instruction, images by their views, and sections of reports as reference.

Every study of images is one question: the instruction, which is the same for all, so that each has donors. Its
reference is its report: the sections that the setting names, in that order, each a paragraph. White space and line
breaks inside a section become single spaces, and everything else is kept as it was written, also XXXX and ___, which
stand for what was taken out to protect patients.
"""

from collections.abc import Iterable, Mapping, Sequence

from dualread.data.datasets.base import AuditStep, Picture, Row, kept_by
from dualread.data.datasets.settings import ReportSettings

_VIEWS = {
    **dict.fromkeys(("PA", "AP", "POSTERO_ANTERIOR", "ANTERO_POSTERIOR"), "frontal"),
    **dict.fromkeys(("LATERAL", "LL", "RL"), "lateral"),
}


def report_row(
    settings: ReportSettings,
    official_id: str,
    source_row: int,
    report: Mapping[str, Sequence[str | None]],
    images: Sequence[Picture],
    patient: str | None = None,
) -> Row:
    """Return the row of a study, which has no reference if none of the sections that `settings` choose has text.

    `report` is {section: its texts}; a report may have several sections of one name. `patient` is None if unknown.
    """
    texts = (" ".join((text or "").split()) for section in settings.sections for text in report.get(section, ()))
    reference = "\n".join(filter(None, texts))
    return Row(
        official_id=official_id,
        question=settings.question,
        reference_answers=(reference,) if reference else (),
        answer_type="open",
        modality="x-ray",
        location="chest",
        images=tuple(images),
        source_row=source_row,
        patient=patient,
    )


def shown(images: Iterable[tuple[str | None, Picture]], views: str) -> tuple[Picture, ...]:
    """Return the images of a study that are shown, frontal ones first; each comes with its position (PA, LL, ...).

    They have their views as roles, unless a view is unknown. With the `views` "frontal", the first frontal image is
    shown alone, without a role.
    """
    known = [(_VIEWS.get((position or "").strip().upper()), picture) for position, picture in images]
    if views == "frontal":
        return tuple(picture for view, picture in known if view == "frontal")[:1]
    known.sort(key=lambda pair: pair[0] or "unknown")  # frontal, lateral, unknown
    if any(view is None for view, _ in known):
        return tuple(picture for _, picture in known)
    return tuple(Picture(picture.source, picture.name, view) for view, picture in known)


def reportable(rows: Sequence[Row], sections: Sequence[str]) -> tuple[list[Row], list[AuditStep]]:
    """Return the rows that show an image and have a reference, in their order, and one audit step per rule."""
    no_text = f"dropped where the report has no text in {' or '.join(sections)}"
    rules = (
        ("images", "dropped where no image is left to be shown", lambda row: len(row.images) > 0),
        ("reference report", no_text, lambda row: len(row.reference_answers) > 0),
    )
    return kept_by(rules, rows)
