"""Replacing functions of torch while a recording lasts, and putting them back."""

from collections.abc import Callable
from typing import Any


class Patches:
    """What was changed in the program, so that all of it can be undone."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:  # noqa: ANN401
        """Put a wrapper around an attribute.

        Args:
            owner: Class or module.
            name: Of the attribute.
            wrap: Makes the wrapper from the original.
        """
        original = getattr(owner, name)
        wrapper = wrap(original)
        setattr(owner, name, wrapper)

        def put_back() -> None:
            # Whoever wrapped it after us keeps what they have.
            if getattr(owner, name) is wrapper:
                setattr(owner, name, original)

        self._undo.append(put_back)

    def add(self, undo: Callable[[], object]) -> None:
        """Remember how to undo a change that has a handle of its own."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Put everything back, the last change first."""
        while self._undo:
            self._undo.pop()()


def compile_nothing_of(*functions: Any) -> None:  # noqa: ANN401
    """Keep functions out of torch.compile, which would try those called from compiled code."""
    import torch

    skip: Any = getattr(torch._C._dynamo.eval_frame, "skip_code", None)  # noqa: SLF001 - what torch.compiler.disable ends in, without its imports
    for function in functions if skip is not None else ():
        skip(function.__code__)
