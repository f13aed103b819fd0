def inner(value):
    raise ValueError(f"no such colour: {value}")


inner("mauve")
