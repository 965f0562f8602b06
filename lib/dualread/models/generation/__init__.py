"""Generation engines: one file an engine, all behind the same interface (`_interface`)."""
