"""Has the connectors of a mesh talk with the real servers: `langgraph dev`, and agents of `a2a-sdk` of both versions. The arguments
are the address of the server with the mesh, and the ports at which it expects these three."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

URL, GRAPHS, NEW, OLD = sys.argv[1:]
HERE = Path(__file__).parent / "connectors"
PROGRAMS = Path(sys.executable).parent


def begin(command, folder):
    environment = {**os.environ, "LANGSMITH_TRACING": "false", "DO_NOT_TRACK": "1"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def wait_for(address):
    for _ in range(1200):
        try:
            if httpx.get(address).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"nobody is at {address}")


def call(entry_point, text, session):
    body = {"entry_point": entry_point, "data": {"text": text}, "session_id": session}
    return httpx.post(f"{URL}/api/mesh/request", json=body, timeout=120).json()


def drive():
    for entry_point in ["graph", "new", "old"]:
        for text in ["hello", "slow"]:
            said = call(entry_point, text, f"{entry_point}-{text}")
            assert said["status"] == "completed" and said["output"]["length"] == len(text), said
        for text, why in [("ask", "which one?"), ("fail", "" if entry_point == "graph" else "no such text")]:
            said = call(entry_point, text, f"{entry_point}-{text}")
            assert said["status"] == "error" and why in str(said["errors"]), said
    # A session has one thread.
    assert call("graph", "more", "graph-hello")["output"]["seen"] == ["hello", "more"]


with tempfile.TemporaryDirectory() as folder:
    graphs = shutil.copytree(HERE, Path(folder) / "graphs")
    options = ["--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", GRAPHS]
    servers = [begin([PROGRAMS / "langgraph", "dev", *options], graphs)]
    servers += [begin([sys.executable, HERE / "a2a_server.py", port, version], folder) for port, version in [(NEW, "1.0"), (OLD, "0.3")]]
    try:
        wait_for(f"http://127.0.0.1:{GRAPHS}/ok")
        for port in [NEW, OLD]:
            wait_for(f"http://127.0.0.1:{port}/.well-known/agent-card.json")
        drive()
    finally:
        for server in servers:
            server.terminate()
            server.wait()
print("driven")
