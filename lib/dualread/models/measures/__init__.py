"""Measures: one file per further pass over a completion, for methods that need more of the model than states.

Entry points of a plugin:
    measure(opened, prompts, completions, settings) -> numbers: What the pass measures of each completion, as float
        arrays [d] by name, of the same names and shapes for all of them. `opened` is the actor
        (`backbones.opened.Opened`), `prompts` what it was asked, all with equally many tokens, and `completions` the
        ids that it generated. A view that names the measure gives these numbers to readers, as `view.features(name)`.
    PASSES: How many passes over prompt and completion it takes, which costs count.
    Settings: What the config may set.
"""
