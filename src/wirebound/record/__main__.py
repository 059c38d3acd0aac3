"""`python -m wirebound.record train.py`: record an unchanged script."""

import sys

from wirebound.record.launch import main

sys.exit(main(sys.argv[1:]))
