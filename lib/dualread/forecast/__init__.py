"""What a study will cost, from its config alone: jobs, work, time, disk and downloads, before anything starts."""
