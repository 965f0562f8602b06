"""A model that a service runs: what it is asked, in the format of the OpenAI API, and what it has replied.

`requests` says what is asked and how an image travels. `replies` checks one reply, `responses` reads files of them.
"""
