"""A model that a service runs: what it is asked, in the format of the OpenAI API, and what it has replied."""
