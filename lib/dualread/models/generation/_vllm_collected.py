"""Greedy answers with vLLM, of whose states something is collected while it answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from dualread.models.backbones.encode import EncodedPrompt, Encoder
from dualread.models.generation._vllm import Core
from dualread.models.generation.base import Collecting


@dataclass(kw_only=True)
class _Begun:
    """One answer.

    Attributes:
        position: Its position in the list of prompts.
        engine_name: The request that is being read for it, as vLLM knows it.
        made: vLLM's output, once the answer has ended.
    """

    position: int
    prompt: EncodedPrompt
    engine_name: str
    made: Any = None


class Collector:
    """Answers prompts in `core`, of which nothing else is asked meanwhile.

    Args:
        core: The opened checkpoint.
        encoder: Decodes its tokens.
        stop: Ids that end a turn.
        forbidden: Ids that no answer contains.
        collecting: What is collected.
    """

    def __init__(self, core: Core, encoder: Encoder, stop: Set[int], forbidden: Sequence[int], collecting: Collecting):
        layers = collecting.layers(core.n_layers)
        assert len(layers) < 2, "vLLM shows one layer besides the last one"
        self._core, self._states = core, core.watch(*layers)
        self._encoder, self._stop, self._forbidden, self._collecting = encoder, stop, forbidden, collecting

    def complete(
        self, prompts: Iterable[EncodedPrompt], parameters: Mapping[str, Any]
    ) -> Iterator[tuple[int, EncodedPrompt, Any, Any]]:
        """Yield (position, prompt, vLLM's output, what was collected) of each prompt when it is answered.

        Raises:
            DataError: A prompt and its answer may be too long (`Core.check_length`).
        """
        waiting, running = enumerate(prompts), dict[str, _Begun]()
        following = next(waiting, None)
        while following or running:
            while following and len(running) < self._core.in_flight:
                position, prompt = following
                running[str(position)] = self._begun(position, prompt, parameters)
                following = next(waiting, None)
            ended = []
            for output in self._core.step():
                answer = running.pop(output.request_id)
                if answer.made is None:
                    [answer.made] = output.outputs
                    if self._lacks_states(answer):
                        running[f"{answer.position}/rest"] = self._read_rest(answer)
                        continue
                ended.append(answer)
            yield from self._collected(ended)

    def _begun(self, position: int, prompt: EncodedPrompt, parameters: Mapping[str, Any]) -> _Begun:
        self._core.check_length(prompt.row, len(prompt.token_ids) + parameters["max_tokens"] + 1)
        token, states = self._encoder.image_token_id, self._states
        # The states of an image that vLLM has in its cache, but nobody here has, have to be computed again.
        here = not prompt.image or states.knows_image(prompt, token) or states.is_reading_image(prompt, token)
        given = self._core.given(prompt, ())
        asked = {**parameters, "skip_reading_prefix_cache": not here}
        name = self._core.add(str(position), given, asked, whole=True)
        states.keep(name, prompt, token)
        return _Begun(position=position, prompt=prompt, engine_name=name)

    def _lacks_states(self, answer: _Begun) -> bool:
        last = self._collecting.reads_last(answer.made.token_ids, self._encoder.decode, self._stop)
        return last or not self._states.has_image(answer.engine_name)

    def _read_rest(self, answer: _Begun) -> _Begun:
        """Let vLLM read what it has not computed: the last token of an answer, which is chosen and not read."""
        has_image, before = self._states.has_image(answer.engine_name), answer.engine_name
        asked = {"temperature": 0.0, "max_tokens": 1, "skip_reading_prefix_cache": not has_image}
        given = self._core.given(answer.prompt, answer.made.token_ids)
        answer.engine_name = self._core.add(f"{answer.position}/rest", given, asked, whole=True)
        self._states.go_on(before, answer.engine_name)
        return answer

    def _collected(self, answers: Sequence[_Begun]) -> Iterator[tuple[int, EncodedPrompt, Any, Any]]:
        import torch

        if not answers:
            return
        ids = [list(answer.made.token_ids) for answer in answers]
        with torch.inference_mode():
            rows = [
                self._states.of_pass(answer.engine_name, len(answer.prompt.token_ids), len(tokens))
                for answer, tokens in zip(answers, ids, strict=True)
            ]
            decode, logits = self._encoder.decode, self._core.logits
            found = self._collecting.read(rows, ids, logits, decode, self._stop, self._forbidden)
        for answer, states in zip(answers, found, strict=True):
            self._states.forget(answer.engine_name)
            yield answer.position, answer.prompt, answer.made, states
