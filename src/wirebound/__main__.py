"""`python -m wirebound` is `wirebound`."""

from wirebound.cli import main

if __name__ == "__main__":
    main()
