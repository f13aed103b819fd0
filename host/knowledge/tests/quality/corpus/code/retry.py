import time


def with_backoff(call, attempts=5):
    """Calls until it works, waiting twice as long after each failure."""
    for attempt in range(attempts):
        try:
            return call()
        except ConnectionError:
            if attempt == attempts - 1:
                raise
            time.sleep(2 ** attempt)
