"""Vision-language models: `checkpoint` opens any of them, `encode` makes tokens of prompts, `parts` finds their parts.

One more file per architecture creates small models from scratch. It defines

    create(texts, pieces, sizes, seed)            (model, processor)

Everywhere, `checkpoint` is the folder of a checkpoint, `settings` is the `settings` of the backbone's config entry (see
`schema/backbones.py`), and `facts` are what experiments say about the checkpoint (`facts`).
"""
