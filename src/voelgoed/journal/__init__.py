"""What happened, in every domain: recorded with the change itself, read in the order of commits."""
