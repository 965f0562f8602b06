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
                        rest, tokens = f"{answer.position}/rest", answer.made.token_ids
                        before, running[rest] = answer.engine_name, answer
                        answer.engine_name = self._core.read_rest(rest, before, answer.prompt, tokens, self._states)
                        continue
                ended.append(answer)
            yield from self._collected(ended)

    def _begun(self, position: int, prompt: EncodedPrompt, parameters: Mapping[str, Any]) -> _Begun:
        self._core.check_length(prompt.row, len(prompt.token_ids) + parameters["max_tokens"] + 1)
        name = self._core.add_watched(str(position), prompt, parameters, self._states, whole=True)
        return _Begun(position=position, prompt=prompt, engine_name=name)

    def _lacks_states(self, answer: _Begun) -> bool:
        last = self._collecting.reads_last(answer.made.token_ids, self._encoder.decode, self._stop)
        return last or not self._states.has_image(answer.engine_name)

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
