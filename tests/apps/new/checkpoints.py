"""Folders that look like checkpoints: a real config.json, and weights of zeros."""

import json
import math
import struct

# The numbers of Qwen/Qwen3-VL-2B-Instruct and google/medgemma-1.5-4b-it, as their config.json name them.
QWEN = {
    "model_type": "qwen3_vl",
    "text_config": {
        **{"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16},
        **{"head_dim": 128, "num_key_value_heads": 8, "vocab_size": 151936},
    },
    "vision_config": {
        **{"hidden_size": 1024, "intermediate_size": 4096, "depth": 24, "patch_size": 16, "spatial_merge_size": 2},
        **{"temporal_patch_size": 2, "out_hidden_size": 2048},
    },
}
GEMMA = {
    "model_type": "gemma3",
    "mm_tokens_per_image": 256,
    "text_config": {
        **{"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "num_attention_heads": 8},
        **{"head_dim": 256, "num_key_value_heads": 4, "vocab_size": 262208},
    },
    "vision_config": {
        **{"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "patch_size": 14},
        "image_size": 896,
    },
}


def checkpoint(folder, config=QWEN, shape=(1000, 2_128_000)):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    n_bytes = 4 * math.prod(shape)
    head = json.dumps({"w": {"dtype": "F32", "shape": shape, "data_offsets": [0, n_bytes]}}).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        file.truncate(8 + len(head) + n_bytes)  # zeros that take no place on the disk
    return folder
