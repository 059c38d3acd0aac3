"""A cluster in a box: hosts as network namespaces, joined by links of a chosen rate.

`Lab` is the way in. Nothing here changes the machine's own network, and everything made
here bears its owner's name, so that a later start can remove what a killed lab left.
"""

from wirebound.lab.launch import alone, torchrun
from wirebound.lab.outcome import RankOutcome, RunOutcome
from wirebound.lab.session import Lab

__all__ = ["Lab", "RankOutcome", "RunOutcome", "alone", "torchrun"]
