"""Training of a tiny backbone from scratch; it stands in for an instruction-tuned checkpoint where none can be had.

`exercises` turns pool items into prompts and completions for every prompt of the study, `loop` trains on them and
reports how often each prompt gets an answer of valid form.
"""
