"""Where a table can come from: a file or memory, the hub, the log of another harness, or a finished study."""
