def run(number: int) -> int:
    """Double a number.

    Args:
        number: What is doubled
    """
    return number * 2
