import math


def water_level(hours_since_high, mean=2.1, amplitude=1.4):
    """Height of the sea above chart datum, in metres, as a cosine of the half-day tide."""
    return mean + amplitude * math.cos(2 * math.pi * hours_since_high / 12.42)
