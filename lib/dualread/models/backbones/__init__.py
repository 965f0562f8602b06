"""Vision-language backbones: one file per architecture; `encode` turns prompts into tokens, `checkpoint` opens models.

A backbone module defines

    TOKEN_TYPES                                   name of the model input that is 1 for image tokens
    load_processor(checkpoint, settings)          processor of a checkpoint folder, with the configured image sizes
    load_model(checkpoint, settings)              model in evaluation mode, with every weight from the checkpoint
    check(checkpoint)                             refuses an incomplete checkpoint folder; reads no weights
    create(texts, pieces, sizes, seed)            (model, processor): a small model from scratch
    image_token_id(processor)                     id of the placeholder at which image states are read
    forbidden_token_ids(processor)                ids that a completion may never contain
    encode_images(model, images)                  function that gives the image arguments of any rows about the images
    position_offsets(model, mask)                 what to add to the column of a later token to get its position
    attention_masks(model, allowed, distance)     mask of a pass in which any given pairs of tokens see each other

`settings` is the `settings` of the backbone's config entry: dtype (float32 or bfloat16), attention, min_pixels,
max_pixels, max_prompt_tokens.
"""
