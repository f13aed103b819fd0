"""What a plugin raises when something does not work, and what the host's functions raise."""


class PluginError(Exception):
    """Something did not work. Raised as it is, it reaches the host as `other`.

    `facts` are further facts by name, shown beside the message.
    """

    kind = "other"

    def __init__(self, message: str, **facts: str):
        super().__init__(message)
        self.message = message
        self.facts = facts


class InvalidInput(PluginError):
    """The caller gave something that cannot be used; the same call will fail again."""

    kind = "invalid-input"


class Denied(PluginError):
    """A capability was not granted; the message names it."""

    kind = "denied"


class Unavailable(PluginError):
    """Something outside is not to be had at the moment; a later call may work."""

    kind = "unavailable"


class DeclarationError(Exception):
    """A plugin's code declares something that cannot be described. Only raised while the plugin is built."""
