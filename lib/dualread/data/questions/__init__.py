"""The table of questions: one row per question, with its image and its role, and an audit of every kept or dropped row.

The order of work: `select` draws the questions, `pictures` reads their images, `audit` refuses what cannot be asked,
`build` makes the table and with `roles` gives each cluster of images its role, `audit` counts, and `build` compares
the digest of the table with the one that the study expects. Then `leakage` checks, with `copies`, that no picture and
no patient has two roles.

In file names, columns and code, a table of questions is called a manifest. It has nothing to do with the MANIFEST.json
that the store keeps for every artifact.
"""
