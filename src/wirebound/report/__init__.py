"""Views of a verdict; they format and never compute."""
