"""One HTML page with the questions of a finished study: image, donor, answers, and what every method says of them."""
