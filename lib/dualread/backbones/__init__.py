"""Vision-language backbones: one file an architecture, and `encode`, the only place where prompts become tokens.

A backbone module offers

    TOKEN_TYPES                                   name of the model input that marks image tokens with 1
    load_processor(checkpoint, settings)          processor of a checkpoint folder, image sizes as configured
    load_model(checkpoint, settings)              model in evaluation mode
    check(checkpoint)                             refuses what is no whole checkpoint; reads no weight
    create(corpus, sizes, seed)                   (model, processor), small and from scratch
    image_token_id(processor)                     id of the placeholder that image states are read at
    forbidden_token_ids(processor)                ids that an answer may never contain
    share_images(model, image_inputs, index)      image features computed once per image, then dealt to rows
    next_position_ids(model, n_before, prompt)    positions of the token that is read next, with a cache

`settings` is the backbone's config entry: dtype (float32 or bfloat16), attention, min_pixels, max_pixels,
max_prompt_tokens.
"""
