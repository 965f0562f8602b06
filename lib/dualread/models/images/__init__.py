"""Image changes: one file per image that a condition or a view can show in place of the question's own.

Entry points of a plugin:
    change(picture, settings, rng) -> picture: What is shown in place of an upright 8-bit RGB picture. `rng` is seeded
        with the plugin, the content of the picture and the number of the draw; the strength of a change has no part in
        it, so that a stronger change is more of the same. `base.unchanged` is for plugins that choose a whole image.
    choose(manifest, pairs) -> rows: Optional. The manifest with another image (`image_files`, `image_id`) and, if they
        differ there, the reference answers of that image. Questions without such an image are left out.
    Settings: What the config may set. A `strength` goes from 0, the picture as it is, to 1.
    NEEDS_PAIRS: True if `choose` reads donor pairs. Splits without pairs are not asked then.
    ONE_PER_SIZE: True if the picture depends on the size of the image alone.
    NO_IMAGE: True if no image is shown at all; `change` is not called then.
"""
