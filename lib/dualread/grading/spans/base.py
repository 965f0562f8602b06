"""What a division of reports into claims is given, and what it has to provide.

A plugin is a module with `spans(reports, settings, source) -> list[list[tuple[int, int]]]`: for each report, the claims
as (start, end) in characters of the completion's text, ascending and without overlap; no claim is an empty list. The
reports are all those of one shard. `settings` is its class `Settings`, or `schema.base.NoSettings`; `source` is the
file that the study names for it, or None.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Report:
    """A completion that is a report.

    Attributes:
        sample_id: The question that it answers.
        text: The completion.
        start: The first character of the part that holds claims: the answer block's inside, without white space at the
            ends, or all of the text where there is no valid answer block.
        end: The character after its last one.
    """

    sample_id: str
    text: str
    start: int
    end: int
