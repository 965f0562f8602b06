"""Measures: one file per further pass over a completion, for methods that need more of the model than states.

Entry points of a plugin:
    measure(opened, prompt, completion, settings) -> numbers: What the pass measures, as float arrays [d] by name, of
        the same names and shapes for every completion. `opened` is the actor (`backbones.opened.Opened`), `prompt` what
        it was asked, `completion` the ids that it generated. A view that names the measure gives these numbers to
        readers, as `view.features(name)`.
    PASSES: How many passes over prompt and completion it takes, which costs count.
    Settings: What the config may set.
"""
