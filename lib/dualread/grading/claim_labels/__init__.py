"""Whether claims of reports are supported: one file per source of labels; `base` says what each gets."""
