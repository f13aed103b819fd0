def greeting(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}!"
