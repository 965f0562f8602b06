"""What loaders of report data sets share: one instruction, images by their views, and sections of reports as reference.

Every study of images is one question: the instruction, which is the same for all, so that each has donors. Its reference
is its report: the sections that the setting names, in that order, each a paragraph. White space and line breaks inside a
section become single spaces, and everything else is kept as it was written, also XXXX and ___, which stand for
what was taken out to protect patients.
"""

from collections.abc import Iterable, Mapping, Sequence

from dualread.data.datasets.base import AuditStep, Picture, Row

Reports = Mapping[str, Sequence[str]]  # the texts of each section of one report; several sections may have one name


def reference_report(report: Reports, sections: Sequence[str]) -> tuple[str, ...]:
    """Return the text of the chosen sections as the only reference; none if they are empty or missing."""
    texts = (" ".join(text.split()) for section in sections for text in report.get(section, ()))
    joined = "\n".join(filter(None, texts))
    return (joined,) if joined else ()


def in_order(views: Iterable[tuple[str | None, Picture]]) -> tuple[Picture, ...]:
    """Return images with their views as roles, frontal ones first; without roles if a view is unknown."""
    known = sorted(views, key=lambda pair: (pair[0] is None, pair[0] or ""))  # frontal, lateral, unknown
    roles = [view for view, _ in known] if all(view for view, _ in known) else [None] * len(known)
    return tuple(Picture(p.source, p.name, role) for (_, p), role in zip(known, roles, strict=True))


def reportable(rows: Sequence[Row], sections: Sequence[str]) -> tuple[list[Row], list[AuditStep]]:
    """Return the rows that show an image and have a reference, in their order, and one audit step per rule."""
    rules = (
        ("images", "dropped where no image is left to be shown", lambda row: len(row.images) > 0),
        (
            "reference report",
            f"dropped where the report has no text in {' or '.join(sections)}",
            lambda row: len(row.reference_answers) > 0,
        ),
    )
    kept, audit = list(rows), []
    for step, reason, holds in rules:
        before, kept = len(kept), [row for row in kept if holds(row)]
        audit.append(AuditStep(step=step, kept=len(kept), dropped=before - len(kept), reason=reason))
    return kept, audit
