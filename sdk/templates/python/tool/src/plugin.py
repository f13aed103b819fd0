"""A tool in Python. Import what you need at the top: a cell has no files to import from later."""

from hotcell_plugin import InvalidInput, log, tool


@tool(read_only=True)
def count_words(text: str, distinct: bool = False) -> dict[str, int]:
    """Counts the words of a text.

    Args:
        text: The text to count in.
        distinct: Count words that occur several times only once.
    """
    words = text.split()
    if not words:
        raise InvalidInput("there are no words in `text`")
    log.debug(f"{len(words)} words")
    return {"words": len(set(words)) if distinct else len(words)}
