"""Data: from the files of a data set to the table of questions that a study asks.

- `datasets` reads the official files of one data set each. Their rows are the questions, unchanged.
- `tables` reads what other programs wrote, and `logs` what other evaluation harnesses have logged.
- `questions` selects questions, identifies images and gives each question its role. The result is the table of
  questions, which lies in `manifests/` and which file names, columns and code call a manifest.
- `donors` finds another image for each question, on which the same question has another gold answer.
- `images` opens image files.
"""
