"""What an actor is asked about a shard or a view of it: which image and prompt, and how its completions are drawn."""

from dualread import plugins
from dualread.models import prompts
from dualread.schema.answers import ChosenImage, Decoding, Image, ShardSpec, View, name_and_settings
from dualread.schema.base import ConfiguredPlugin, Plugin, Prompt, Wire
from dualread.schema.data import ClaimsSpec, plugin_and_settings
from dualread.schema.study import Config


def shard_spec(config: Config, actor: str, shard: tuple[str, ...]) -> ShardSpec:
    """Return what is shown and asked of a shard or a view, the same for generation and replay."""
    dataset, split, condition = shard[:3]
    entry = config.conditions[condition]
    view = config.views[shard[3]] if len(shard) > 3 else None
    prompt = prompt_of(config, actor, dataset, condition, *shard[3:])
    choices = view.choices if view else None
    shows_answer = view is not None and "{ANSWER}" in prompts.template(prompt.name)
    own_image, contract = view.image if view else None, contract_of(config, actor, dataset, condition)
    return ShardSpec(
        dataset=dataset,
        split=split,
        condition="/".join(shard[2:]),
        image=image_of(own_image or entry.image),
        prompt=prompt,
        decoding=None if choices else _decoding(config, actor, condition, view),
        choices=choices,
        completions=entry.completions if view is None else condition if view.gives_states else None,
        shows=image_of(entry.image) if own_image else None,
        draws=view.draws if view else None,
        layers=tuple(view.layers) if view and view.layers else None,
        measure=configured("measures", view.measure.name, view.measure.settings) if view and view.measure else None,
        answer_contract=plugin("contracts", contract) if shows_answer else None,
        thinking_ends=thinking_ends_of(contract),
    )


def image_of(image: Image) -> ChosenImage:
    """Return an image change as specs name it."""
    name, settings = name_and_settings(image)
    role = None if isinstance(image, str) else image.role
    return ChosenImage(module=plugins.module_of("images", name), settings=settings, role=role)


def plugin(family: str, name: str) -> Plugin:
    """Return a plugin as specs name it: a key covers the code of what a spec names."""
    return Plugin(module=plugins.module_of(family, name))


def configured(family: str, name: str, settings: Wire) -> ConfiguredPlugin:
    """Return a plugin with its settings as specs name it."""
    return ConfiguredPlugin(module=plugins.module_of(family, name), settings=settings)


def claims_of(config: Config, actor: str, shard: tuple[str, ...]) -> ClaimsSpec | None:
    """Return how the reports of a shard, or of a view of it, are divided into claims and labeled; None for answers."""
    claims = config.datasets[shard[0]].claims
    if claims is None:
        return None
    return ClaimsSpec(
        spans=configured("spans", *plugin_and_settings(claims.spans)),
        labels=configured("claim_labels", *plugin_and_settings(claims.labels)),
        thinking_ends=thinking_ends_of(contract_of(config, actor, shard[0], shard[2])),
    )


def prompt_of(config: Config, actor: str, dataset: str, condition: str, view: str | None = None) -> Prompt:
    """Return the prompt of the first that names one: view, actor (its own format), condition, data set."""
    of_view = config.views[view].prompt if view else None
    name = (
        of_view or config.actors[actor].prompt or config.conditions[condition].prompt or config.datasets[dataset].prompt
    )
    hints = Plugin(module="models.hints") if "{HINT}" in prompts.template(name) else None
    return Prompt(name=name, file=prompts.file_of(name), hints=hints)


def contract_of(config: Config, actor: str, dataset: str, condition: str) -> str:
    """Return the format of an actor's completions.

    It is that which the entry names whose prompt is put, of the actor or the condition; or the contract of the prompt's
    name; or what the actor's reward asks for.
    """
    entry, prompt = config.actors[actor], prompt_of(config, actor, dataset, condition).name
    named = entry.contract or (None if entry.prompt else config.conditions[condition].contract)
    of_prompt = prompt if prompt in plugins.known("contracts") else None
    rewarded = plugins.declared("rewards", entry.reward, "CONTRACT") if entry.reward else None
    return named or of_prompt or rewarded or "single"


def thinking_ends_of(contract: str) -> str | None:
    """Return what ends the thinking of completions of this format; None if they do not think."""
    return plugins.declared("contracts", contract, "THINKING_ENDS")


def _decoding(config: Config, actor: str, condition: str, view: View | None) -> Decoding:
    """Return how a view's completions are drawn, or else the condition's with the actor's own budget."""
    if view and view.decoding:
        longest = view.decoding.max_completion_tokens or config.generation.decoding.max_completion_tokens
        return Decoding(**{**dict(view.decoding), "max_completion_tokens": longest})
    decoding = config.conditions[condition].decoding or config.generation.decoding
    budget = config.actors[actor].max_completion_tokens or decoding.max_completion_tokens
    return decoding.model_copy(update={"max_completion_tokens": budget})
