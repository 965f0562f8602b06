"""One row as transformers alone reads it: no batch, no padding, no cache."""

import torch


def plain_pass(model, prompt, completion, **wanted):
    ids = torch.tensor([[*prompt.token_ids, *completion]])
    types = {name: torch.tensor([[*values, *[0] * len(completion)]]) for name, values in prompt.types.items()}
    images = {name: tensor for name, tensor in prompt.image.items() if name != "num_crops"}
    with torch.inference_mode():
        return model(input_ids=ids, **{"attention_mask": torch.ones_like(ids), **types, **images, **wanted})
