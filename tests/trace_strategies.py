"""Hypothesis strategies for sets of time and for recordings."""

from hypothesis import strategies as st

from recordings import Run

EDGE = 40
"""Where drawn intervals end at the latest."""

intervals = st.lists(st.tuples(st.integers(0, EDGE), st.integers(0, EDGE)), max_size=12)
"""Starts and ends of anything, empty and reversed ones too."""

TOKENS = [
    b"-1",
    b"1e400",
    b"NaN",
    b"null",
    b"[",
    b"{",
    b'"',
    b"]",
    b"\n",
    b"\x00",
    b"\xff",
    b"9" * 400,
]
"""What breaks numbers, nesting, strings, lines and text."""


@st.composite
def damaged_recordings(draw: st.DrawFn) -> bytes:
    """The file of a rank cut, doubled, or with a stretch of it replaced."""
    sample = Run(steps=2).content()
    start = draw(st.integers(0, len(sample)))
    stop = draw(st.integers(start, min(len(sample), start + 60)))
    middle = draw(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=8)))
    tail = draw(st.sampled_from([sample[stop:], b"", sample]))
    return sample[:start] + middle + tail
