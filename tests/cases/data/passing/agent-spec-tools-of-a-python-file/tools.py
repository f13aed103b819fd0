"""Tools of the order desk."""

ORDERS = {7: ("pen", 3), 8: ("ink", 1)}


def find_order(number: int) -> dict:
    """Looks an order up."""
    article, count = ORDERS[number]
    return {"article": article, "count": count}


def _secret() -> str:
    return "not a tool"
