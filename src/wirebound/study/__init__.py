"""Studies: a grid of real runs, archived with where and how each was made."""
