"""From annotations to JSON schemas: the files of the SDK for plugins in Python, so that a function is described alike in both."""
