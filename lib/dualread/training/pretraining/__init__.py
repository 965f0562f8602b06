"""Pretraining of a tiny backbone from scratch, for studies that cannot use an instruction-tuned checkpoint.

`exercises` turns the items of a corpus into prompts and completions, for every prompt of the study. `loop` trains on
them, and reports for each prompt the share of completions in valid form.
"""
