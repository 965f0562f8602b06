"""Actors whose answers are given, and the methods that cannot judge these: there are no hidden states."""

from collections.abc import Mapping

from dualread import plugins
from dualread.schema.study import Config
from dualread.study.selection import with_methods

# The one tensor of a replay that is known of given answers, if the service gives log-probabilities.
_LIKELIHOOD = frozenset({"answer_log_prob"})


def given(config: Config) -> list[str]:
    """Return the actors whose answers are given."""
    return [name for name, actor in config.actors.items() if actor.answers is not None]


def left_out(config: Config) -> Mapping[str, str]:
    """Return the reason for each method that judges given answers and reads what these lack.

    Args:
        config: A study with all its methods.
    """
    reasons: dict[str, str] = {}
    for name, method in config.methods.items():  # parents come before their children
        if method.actor not in given(config):
            continue
        views = [config.views[view] for view in method.views or []]
        lacking = [parent for parent in method.parents.values() if parent in reasons]
        if set(plugins.declared("readers", method.reader, "FEATURES") or ()) - _LIKELIHOOD or any(
            view.gives_states for view in views
        ):
            reasons[name] = "it reads hidden states or single tokens, which given answers lack"
        elif any(view.choices is not None and view.choices.words is None for view in views):
            reasons[name] = "it reads the likelihoods of many integers, which services do not give"
        elif lacking:
            reasons[name] = f"it builds on {lacking[0]}, which is left out"
    return reasons


def without_states(config: Config) -> Config:
    """Return the study without the methods that are `left_out`, and without what shows these alone; it names them."""
    lacking = left_out(config)
    if not lacking:
        return config
    readable = with_methods(config, [name for name in config.methods if name not in lacking])
    for name, reason in lacking.items():
        readable.left_out.setdefault(config.methods[name].actor, {})[name] = reason
    return readable
