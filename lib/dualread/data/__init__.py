"""Data: from the files of a data set to the table of questions that a study asks.

- `datasets` reads the official files of one data set each. Their rows are the questions, unchanged.
- `logs` reads what other evaluation harnesses have logged, for `dualread evaluate`.
- `corpora` makes the images and questions from which a tiny backbone learns from scratch.
- `phantoms` draws images, and `writers` writes them in the official formats, for studies that need no real data.
- `questions` selects questions, identifies images and gives each question its role. The result is the table of
  questions, which lies in `manifests/` and which file names, columns and code call a manifest.
- `donors` finds another image for each question, on which the same question has another gold answer.
- `images` opens image files.
"""
