"""One module a stage: reads input artifacts, calls the library, writes files. The only place with file names in it."""
