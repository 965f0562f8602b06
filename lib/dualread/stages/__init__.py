"""One module per stage: it reads input artifacts, calls the library and writes files. Only stages know file names."""
