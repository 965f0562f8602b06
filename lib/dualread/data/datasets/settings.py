"""Settings that several loaders have."""

from typing import Literal

from pydantic import Field

from dualread.schema.base import AtLeastOne, NotEmpty, Section


class ReportSettings(Section):
    """What is asked, and which sections of a report are its reference."""

    sections: AtLeastOne[Literal["findings", "impression"]] = Field(default=["findings", "impression"])
    """The sections that are the reference, in this order. Reports without text in any of them are left out."""
    question: NotEmpty = "Write a report of this image."
    """The instruction."""


class ViewedReportSettings(ReportSettings):
    """What is asked, which sections are the reference, and which views are shown."""

    views: Literal["all", "frontal"] = "all"
    """Whether all images of a study are shown, frontal ones first, or the first frontal one alone."""
