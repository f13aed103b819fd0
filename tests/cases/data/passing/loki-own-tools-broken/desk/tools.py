"""Tools."""
import psycopg


def rows() -> list:
    """Read the rows"""
    return psycopg.connect().rows()
