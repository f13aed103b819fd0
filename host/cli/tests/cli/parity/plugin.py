"""Everything that a plugin may use, one tool each."""

import os
import random as chance
import time
from typing import Any

import hotcell_plugin
from hotcell_plugin import config, kv, llm, log, progress, secret, tool, tools
from hotcell_plugin import files as directory
from hotcell_plugin import http as web


@tool
def settings() -> str:
    log.info("looked up")
    progress(1, 2, "half")
    return config.require("place")


@tool
def files(path: str) -> dict[str, Any]:
    text = directory.read_text(path)
    directory.write("/data/copy.txt", text)
    copied = directory.read_text("/data/copy.txt")
    names = directory.entries("/data")
    directory.remove("/data/copy.txt")
    return {"copied": copied, "names": names}


@tool(name="kv")
def store() -> dict[str, Any]:
    kv.set("a", "1")
    kv.delete("gone")
    return {"a": kv.get_text("a"), "gone": kv.get_text("gone"), "keys": kv.keys()}


@tool
def http() -> str:
    return web.post("https://api.example.org/echo", body="ping").success().text()


@tool
def secrets() -> bool:
    return secret("KEY") != ""


@tool(name="llm")
def model() -> str:
    return llm.complete("hi")


@tool(name="tools")
def other() -> Any:
    return tools.call("other", x=1)


@tool
def ask() -> str:
    return hotcell_plugin.ask("Which way?")


@tool
def clock() -> int:
    return int(time.time())


IN_THE_IMAGE = chance.getstate()


@tool
def random() -> bool:
    # What was drawn while the plugin was built is not drawn again in every call.
    return os.urandom(16) != os.urandom(16) and chance.getstate() != IN_THE_IMAGE
