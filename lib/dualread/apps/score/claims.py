"""Where the claims of new reports are, for a reader that judges claims: as the reader's study divided its reports.

Only what divides a report by its text alone can divide one that no study knows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dualread import plugins
from dualread.errors import ConfigError
from dualread.grading.parse import answer_span
from dualread.grading.spans.base import Report, Span, checked_spans, divided
from dualread.schema.base import NoSettings
from dualread.schema.data import plugin_and_settings
from dualread.schema.recorded import RequiredView, Requirements

NO_CONFIDENCE = "this reader judges the claims of a report, and not the report as a whole"


@dataclass(frozen=True, kw_only=True)
class ClaimDivider:
    """Divides completions into claims, also while they go on.

    Attributes:
        plugin: What divides them (`grading.spans`).
        settings: Its settings.
        thinking_ends: What ends the thinking before a report; None where completions do not think.
    """

    plugin: str
    settings: Any
    thinking_ends: str | None

    @classmethod
    def from_requirements(
        cls, requirements: Requirements, views: Sequence[RequiredView], where: str
    ) -> "ClaimDivider | None":
        """Return what divides the reports that readers judge; None for readers of whole answers.

        A ConfigError, which names the file `where`, says that no new report can be divided in this way, or that one of
        the `views` that readers read is not one of states.
        """
        if requirements.spans is None:
            return None
        name, wire = plugin_and_settings(requirements.spans)
        settings = getattr(plugins.load("spans", name), "Settings", NoSettings)
        if "path" in settings.model_fields:
            raise ConfigError(
                f"{where}: its claims are those that a table names (spans: {name}), and no table names those of a new"
                " report. Expected a reader whose study divides reports by their text, such as with `sentences`."
            )
        checked = settings.from_spec(wire, f"{where}: spans.{name}")
        for view in views:
            if not view.forced or view.measure is not None:
                raise ConfigError(
                    f"{where}: judges claims, and reads the view {view.name!r}, in which the actor is asked about a"
                    " whole answer. Expected views of states alone. Choose another method."
                )
        thinking_ends = plugins.declared("contracts", requirements.contract, "THINKING_ENDS")
        return cls(plugin=name, settings=checked, thinking_ends=thinking_ends)

    def claims(self, reports: Iterable[tuple[str, str]]) -> list[list[Span]]:
        """Return the claims of completions, in characters of their texts; a report is its name in errors and its text.

        A DataError says that a plugin of another package gives claims that overlap or lie outside the text.
        """
        module = plugins.load("spans", self.plugin)
        return divided(module, reports, self.settings, None, self.thinking_ends, self.plugin)

    def settled(self, text: str, before: Sequence[Span] = ()) -> list[Span]:
        """Return the claims of a completion that goes on, as far as its next tokens leave them as they are.

        If its answer block is not closed, those are the claims of the completion that closes it here, but for the last
        one, which may grow. Before the block is opened there are none. Only what stands behind the claims that were
        settled `before`, with fewer tokens, is divided. Errors are those of `claims`.
        """
        is_closed = answer_span(text, self.thinking_ends) is not None
        closed = text if is_closed else f"{text}</answer>"
        if (block := answer_span(closed, self.thinking_ends)) is None:
            return []
        start = max([block[0], *(end for _, end in before[-1:])])
        rest = Report(sample_id="", text=closed, start=start, end=block[1])
        behind = plugins.load("spans", self.plugin).spans([rest], self.settings, None)
        [claims] = checked_spans([rest], [[*before, *spans] for spans in behind], self.plugin)
        return claims if is_closed else claims[: max(len(before), len(claims) - 1)]
