"""Settings that several loaders have."""

from typing import Literal

from dualread.schema.base import AtLeastOne, NotEmpty, Section


class ReportSettings(Section):
    """What is asked, and which sections of a report are its reference."""

    sections: AtLeastOne[Literal["findings", "impression"]] = ("findings", "impression")
    """The sections that are the reference, in this order. A report needs one of them; reports with none are left out."""
    question: NotEmpty = "Write a report of this image."
    """The instruction."""
