"""Generation with `transformers`: batches of similar length, padded on the left.

The engine of choice for tiny models and small machines; it needs no environment of its own.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from dualread.backbones.encode import Opened, open_checkpoint
from dualread.generation._interface import Completion, Decoding, Request
from dualread.progress import track
from dualread.seeding import derive_seed

SETTINGS = {"batch_size": {"type": "integer", "minimum": 1}}


def open_engine(
    checkpoint: Path, backbone: ModuleType, settings: Mapping[str, Any], engine: Mapping[str, Any]
) -> "TransformersEngine":
    """Load `checkpoint`; `settings` is the backbone's entry, `engine` holds `batch_size`."""
    return TransformersEngine(open_checkpoint(checkpoint, backbone, settings), engine["batch_size"])


class TransformersEngine:
    """See `dualread.generation._interface.Engine`."""

    def __init__(self, opened: Opened, batch_size: int):
        self.model = opened.model
        self.encoder = opened.encoder
        self.forbidden = list(opened.forbidden)
        self.stop = opened.stop
        self.batch_size = batch_size

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> list[list[Completion]]:
        """Complete `requests`; see the interface."""
        # Ties are broken by position, so the batches depend on the list of requests and on nothing else.
        order = sorted(range(len(requests)), key=lambda i: (len(requests[i].text), i))
        batches = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        results: list[list[Completion]] = [[] for _ in requests]
        for number, batch in enumerate(track(batches, total=len(batches), label="generating (batches)")):
            seed = derive_seed("generation", decoding.seed, number)
            for i, completions in zip(batch, self._complete([requests[i] for i in batch], decoding, seed), strict=True):
                results[i] = completions
        return results

    def _complete(self, requests: Sequence[Request], decoding: Decoding, seed: int) -> list[list[Completion]]:
        import torch
        from transformers import LogitsProcessorList

        prompts = [self.encoder.prompt(r.text, image_key=r.image_key, image=r.image, row=r.row) for r in requests]
        inputs = {**self.encoder.batch(prompts), **self.encoder.image_inputs(prompts)}
        inputs = {name: tensor.to(self.model.device) for name, tensor in inputs.items()}
        width = inputs["input_ids"].shape[1]
        recorder = _recorder(self.forbidden)
        torch.manual_seed(seed)  # `generate` draws from the global generator
        with torch.inference_mode():
            output = self.model.generate(
                **inputs,
                **_strategy(decoding),
                max_new_tokens=decoding.max_completion_tokens,
                logits_processor=LogitsProcessorList([recorder]),
            )
        log_probs = recorder.finish(output).cpu().tolist()
        n, tokens = decoding.n_samples, output[:, width:].cpu().tolist()
        return [
            [self._completion(prompt.token_ids, tokens[k], log_probs[k]) for k in range(i * n, (i + 1) * n)]
            for i, prompt in enumerate(prompts)
        ]

    def _completion(self, prompt: Sequence[int], tokens: list[int], log_probs: list[float]) -> Completion:
        length = next((t + 1 for t, token in enumerate(tokens) if token in self.stop), None)
        tokens, log_probs = tokens[:length], log_probs[:length]
        return Completion(
            prompt_token_ids=prompt,
            token_ids=tokens,
            token_log_probs=log_probs,
            text=self.encoder.tokenizer.decode(tokens, skip_special_tokens=True),
            finish_reason="length" if length is None else "stop",
        )


def _strategy(decoding: Decoding) -> dict[str, Any]:
    # Every knob is given, so that nothing a checkpoint's generation_config.json says changes the result.
    if decoding.temperature == 0:
        return {"do_sample": False, "num_beams": 1, "temperature": None, "top_p": None, "top_k": None}
    return {
        "do_sample": True,
        "num_beams": 1,
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "top_k": 0,
        "num_return_sequences": decoding.n_samples,
    }


def _recorder(forbidden: list[int]) -> Any:
    """Return a logits processor that notes the raw log-probability of every chosen id, then bars `forbidden` ids."""
    import torch
    from transformers import LogitsProcessor

    class Recorder(LogitsProcessor):
        def __init__(self) -> None:
            self.columns: list[torch.Tensor] = []
            self.pending: torch.Tensor | None = None

        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            self._note(input_ids)
            self.pending = torch.log_softmax(scores.float(), dim=-1)
            barred = scores.clone()
            barred[:, forbidden] = -float("inf")
            return barred

        def _note(self, input_ids: torch.Tensor) -> None:
            # The id chosen from the last scores is known only now; keeping one step of scores bounds the memory.
            if self.pending is not None:
                self.columns.append(self.pending.gather(1, input_ids[:, -1:]))

        def finish(self, output: torch.Tensor) -> torch.Tensor:
            self._note(output)
            return torch.cat(self.columns, dim=1)

    return Recorder()
