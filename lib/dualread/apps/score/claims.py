"""Where the claims of new reports are, for a reader that judges claims: as the reader's study divided its reports.

Only what divides a report by its text alone can divide one that no study knows.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from dualread import plugins
from dualread.apps.score.results import ShownQuestion
from dualread.errors import ConfigError, DataError
from dualread.grading.parse import answer_span
from dualread.grading.spans.base import Span, divided
from dualread.models.actor import Completion
from dualread.schema.base import NoSettings
from dualread.schema.data import plugin_and_settings
from dualread.schema.recorded import RequiredView, Requirements

NO_CONFIDENCE = "this reader judges the claims of a report, and not the report as a whole"


def check_claims(requirements: Requirements, views: Sequence[RequiredView], where: str) -> None:
    """Check that the claims of a new report can be found and read; a reader of whole answers passes.

    Args:
        requirements: What the reader depends on.
        views: The views that it reads.
        where: The file that errors name.

    Raises:
        ConfigError: The plugin is unknown, a setting is wrong, it reads a table, or a view is not one of states.
    """
    if requirements.spans is None:
        return
    _plugin(requirements, where)
    for view in views:
        if not view.forced or view.measure is not None:
            raise ConfigError(
                f"{where}: judges claims, and reads the view {view.name!r}, in which the actor is asked about a whole"
                " answer. Expected views of states alone. Choose another method."
            )


def claims_of(
    requirements: Requirements, asked: Sequence[ShownQuestion], completions: Sequence[Completion]
) -> list[list[Span]] | None:
    """Return the claims of each completion, in characters of its text; None for a reader of whole answers.

    Raises:
        DataError: A plugin of another package gives claims that overlap or lie outside the text.
    """
    if requirements.spans is None:
        return None
    module, settings = _plugin(requirements, "scoring")
    thinking_ends = plugins.declared("contracts", requirements.contract, "THINKING_ENDS")
    texts = [(question.name, completion.text) for question, completion in zip(asked, completions, strict=True)]
    return divided(module, texts, settings, None, thinking_ends, str(requirements.spans))


class ClaimDivider:
    """Finds the claims of single completions for readers of claims, also while a completion goes on.

    Of a completion whose claims are not as expected, it says None, and `claims_of` what is wrong.
    """

    def __init__(self, requirements: Requirements):
        self._module, self._settings = _plugin(requirements, "scoring")
        self._thinking_ends = plugins.declared("contracts", requirements.contract, "THINKING_ENDS")

    def claims(self, text: str) -> list[Span] | None:
        """Return the claims of a completion."""
        try:
            return divided(self._module, [("", text)], self._settings, None, self._thinking_ends, "")[0]
        except DataError:
            return None

    def settled(self, text: str) -> list[Span] | None:
        """Return the claims of a completion that goes on which its next tokens leave as they are.

        If its answer block is not closed, those are the claims of the completion that closes it here, but for the last
        one, which may grow. Before the block is opened there are none.
        """
        if answer_span(text, self._thinking_ends) is not None:
            return self.claims(text)
        closed = f"{text}</answer>"
        is_open = answer_span(closed, self._thinking_ends) is not None
        return (self.claims(closed) or [])[:-1] if is_open else []


def _plugin(requirements: Requirements, where: str) -> tuple[ModuleType, Any]:
    """Return what divides reports, and its settings."""
    assert requirements.spans is not None, "its readers judge claims"
    name, wire = plugin_and_settings(requirements.spans)
    try:
        module = plugins.load("spans", name)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    settings = getattr(module, "Settings", NoSettings)
    if "path" in settings.model_fields:
        raise ConfigError(
            f"{where}: its claims are those that a table names (spans: {name}), and no table names those of a new"
            " report. Expected a reader whose study divides reports by their text, such as with `sentences`."
        )
    return module, settings.from_spec(wire, f"{where}: spans.{name}")
