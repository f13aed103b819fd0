class Busy(Exception):
    pass


def attempt(number: int) -> int:
    """Fails as the number says."""
    if number == 1:
        raise ValueError("not one")
    if number == 2:
        raise Busy("come back later")
    return number * 10
