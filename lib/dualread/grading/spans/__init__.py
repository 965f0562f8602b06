"""Where the claims of a report are: one file per way to divide its text; `base` says what each gets."""
