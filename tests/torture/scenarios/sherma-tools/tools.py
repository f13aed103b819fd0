import urllib.request


def price(what: str) -> str:
    """Tells what something costs."""
    with urllib.request.urlopen("{WORLD}/price/" + what) as reply:
        return reply.read().decode()


def order(what: str, at: str) -> str:
    """Orders something at a price."""
    with urllib.request.urlopen("{WORLD}/order/" + what, data=at.encode()) as reply:
        return reply.read().decode()
