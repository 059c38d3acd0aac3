"""Text from files made harmless: what a terminal would obey is shown instead."""

LONGEST = 1000
"""Characters of one paragraph; a longer one is a name out of hand."""


def visible(text: str) -> str:
    r"""The text with control and invisible characters as escapes, such as `\x1b`.

    The middle of a text longer than `LONGEST` is left out.
    """
    if len(text) > LONGEST:
        half = LONGEST // 2
        text = f"{text[:half]} ... {text[-half:]}"
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
