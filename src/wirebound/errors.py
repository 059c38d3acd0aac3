"""The errors a user can cause, each one sentence that says what to do.

`cli` is the only place that turns one into a message and an exit status; the
library never prints and never exits.
"""


class WireboundError(Exception):
    """Base of every error caused by input rather than by a bug.

    Args:
        message: What is wrong and where: file, place, what was expected.
        hint: What to do about it, when there is something to do.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} ({self.hint})"


class QuantityError(WireboundError):
    """A size, rate, time or ratio that cannot be understood."""


class ReadError(WireboundError):
    """A file that cannot be read as what it should be."""


class WorkloadError(WireboundError):
    """A workload that describes no possible training step."""


class NetworkError(WireboundError):
    """A network that describes no possible machine."""


class ScenarioError(WireboundError):
    """A scenario that names an unknown key or an impossible value."""


class LabError(WireboundError):
    """A lab that cannot be built here, or that broke while a program ran in it."""


class StudyError(WireboundError):
    """A study that cannot be made as it is described, or kept where it should be."""


class MeasureError(WireboundError):
    """A measurement that cannot be made here, or that broke off."""


class GateError(WireboundError):
    """A check that the user asked for and that did not hold: a finding, not a failure."""

    exit_code = 1
