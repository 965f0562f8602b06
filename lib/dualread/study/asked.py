"""What an actor is asked about a shard or a view of it: which image and prompt, and how its completions are drawn."""

from dualread import plugins
from dualread.declared.answers import Contract, Decoding, ShardSpec, View
from dualread.declared.base import Prompt
from dualread.declared.study import Config
from dualread.models import prompts


def shard_spec(config: Config, actor: str, shard: tuple[str, ...]) -> ShardSpec:
    """Return what is shown and asked, the same for generation and replay.

    Args:
        config: The study.
        actor: Who is asked.
        shard: (data set, split, condition), or (data set, split, condition, view).
    """
    dataset, split, condition = shard[:3]
    entry = config.conditions[condition]
    view = config.views[shard[3]] if len(shard) > 3 else None
    prompt = prompt_of(config, actor, dataset, condition, *shard[3:])
    choices = view.choices if view else None
    shows_answer = view is not None and "{ANSWER}" in prompts.template(prompt.name)
    is_shown_another = view is not None and view.image is not None
    return ShardSpec(
        dataset=dataset,
        split=split,
        condition="/".join(shard[2:]),
        image=view.image if view and view.image else entry.image,
        prompt=prompt,
        decoding=None if choices else _decoding(config, actor, condition, view),
        choices=choices,
        completions=condition if is_shown_another else entry.completions,
        shows=entry.image if is_shown_another else None,
        answer_contract=contract_of(config, actor) if shows_answer else None,
    )


def prompt_of(config: Config, actor: str, dataset: str, condition: str, view: str | None = None) -> Prompt:
    """Return the prompt of the first that names one: view, actor (its own format), condition, data set."""
    of_view = config.views[view].prompt if view else None
    name = (
        of_view or config.actors[actor].prompt or config.conditions[condition].prompt or config.datasets[dataset].prompt
    )
    return Prompt(name=name, file=f"models/prompts/{name}.txt")


def contract_of(config: Config, actor: str) -> Contract:
    """Return the form of the actor's completions: what the config says, or what its reward asks for."""
    entry = config.actors[actor]
    rewarded = plugins.declared("rewards", entry.reward, "CONTRACT") if entry.reward else None
    return entry.contract or rewarded or "single"


def _decoding(config: Config, actor: str, condition: str, view: View | None) -> Decoding:
    """Return how a view's completions are drawn, or else the condition's with the actor's own budget."""
    if view and view.decoding:
        return view.decoding
    decoding = config.conditions[condition].decoding or config.generation.decoding
    budget = config.actors[actor].max_completion_tokens or decoding.max_completion_tokens
    return decoding.model_copy(update={"max_completion_tokens": budget})
