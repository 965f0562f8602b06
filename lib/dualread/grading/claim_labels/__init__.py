"""Whether claims of reports are supported: one file per source of labels, see `base`."""
