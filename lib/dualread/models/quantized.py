"""Weights in 8 or 4 bits by bitsandbytes, which rounds them when a checkpoint is opened.

Only stages in which such a model answers, or its answers are replayed, have this module in their spec, and with it the
version of bitsandbytes in their key. Training and `probe_checkpoint` read the weights as they are.
"""

import logging
from pathlib import Path
from typing import Any

from dualread.errors import ConfigError
from dualread.schema.base import Wire


def open_model(model_class: Any, checkpoint: Path, settings: Wire, **arguments: Any) -> Any:
    """Return the model of a checkpoint with the weights of all linear layers but the head in 8 or 4 bits.

    `model_class` is its class in transformers, and `arguments` are further ones of `from_pretrained`.
    """
    import torch
    from transformers import BitsAndBytesConfig

    try:
        from bitsandbytes.nn.modules import Linear4bit
    except ImportError as error:
        raise ConfigError(
            "quantization: bitsandbytes is not installed. Expected it beside torch. Install it with `pip install"
            " 'dualread[quantization]'`, or leave out `quantization`."
        ) from error
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # 8 bits: a line for each product
    four = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": getattr(torch, settings["dtype"])}
    bits = settings["quantization"]["bits"]
    config = BitsAndBytesConfig(load_in_8bit=True) if bits == 8 else BitsAndBytesConfig(load_in_4bit=True, **four)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model_class.from_pretrained(checkpoint, quantization_config=config, device_map={"": device}, **arguments)
    for layer in model.modules():
        if isinstance(layer, Linear4bit):
            # Some CPUs would pack the weights in another form, which not all widths allow and nothing else can read.
            layer.support_avx512bf16_for_cpu = False
    return model
