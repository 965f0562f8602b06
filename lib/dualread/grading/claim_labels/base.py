"""What is known of a claim before it has a label, and what a source of labels has to provide.

A plugin is a module with `supported(claims, settings, source) -> list[bool | None]`, one label per claim, in their
order: True where the reference of the image that is shown supports the claim, False where it does not (on a donor's
image: contradicts it), None where nothing says so. Claims without a label are counted and never scored. The claims are
all those of one shard, that is of one data set, split and condition. `settings` is the plugin's class `Settings`, or
`schema.base.NoSettings`. If it has the setting `path`, that file of the study is read as a table, and `source` is its
rows; otherwise it is None.
"""

from dataclasses import dataclass

import polars as pl


def claim_id(sample_id: str, k: int) -> str:
    """Return the id of claim `k` (0, 1, ... in the order of the text) of the report on a question."""
    return f"{sample_id}#{k}"


def question_of(ids: pl.Expr) -> pl.Expr:
    """Return the sample_id of the question of each claim, by the claims' ids; other ids stay as they are."""
    return ids.str.replace(r"#\d+$", "")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of a report.

    Attributes:
        id: The claim's own id, as `claim_id` makes it; equal under every condition that has the same completion.
        sample_id: The question that the report answers.
        condition: What was shown: "original", "donor_fixed_prefix", ...
        image_id: The image that was shown.
        start: The first character of the claim in the completion's text.
        end: The character after its last one.
        text: The characters from `start` to `end`.
        references: The reference reports of the image that is shown, verbatim; at least one.
    """

    id: str
    sample_id: str
    condition: str
    image_id: str
    start: int
    end: int
    text: str
    references: tuple[str, ...]
