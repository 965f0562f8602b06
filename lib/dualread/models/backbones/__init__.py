"""Vision-language backbones: one file per architecture; `encode` turns prompts into tokens, `checkpoint` opens models.

A backbone module offers

    TOKEN_TYPES                                   name of the model input that marks image tokens with 1
    load_processor(checkpoint, settings)          processor of a checkpoint folder, image sizes as configured
    load_model(checkpoint, settings)              model in evaluation mode, with every weight from the checkpoint
    check(checkpoint)                             refuses what is not a whole checkpoint; reads no weight
    create(corpus, sizes, seed)                   (model, processor), small and from scratch
    image_token_id(processor)                     id of the placeholder that image states are read at
    forbidden_token_ids(processor)                ids that an answer may never contain
    share_images(model, image_inputs, index)      image features computed once per image, then dealt to rows
    next_position_ids(model, n_before, prompt)    positions of the token that is read next, with a cache

`settings` is the backbone's config entry: dtype (float32 or bfloat16), attention, min_pixels, max_pixels,
max_prompt_tokens.
"""
