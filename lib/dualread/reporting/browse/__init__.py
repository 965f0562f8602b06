"""One HTML page of a study: its questions with image, donor, answers and confidences, and trainings that still run."""
