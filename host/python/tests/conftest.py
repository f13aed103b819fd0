"""A model that answers as it is told, and folders with agents."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hotcell import Host, ProviderGateway

DESK = """\
name: desk
description: Resolves billing questions.
model: anything
system_prompt: Answer customers of ACME.
tools: [lookup_account]
loop_policy: {max_iterations: 4, on_max_iterations: error}
"""

TOOL_STEP = """\
name: one
config: {max_retries: 0}
state: {customer: Ada}
steps:
  - {id: look, type: tool, tool_name: lookup_account, tool_args: {customer: state.customer}, output: account}
"""

GATE = """\
name: gated
state: {}
steps:
  - {id: before, type: tool, tool_name: count, tool_args: {}, output: counted}
  - {id: gate, type: approval_gate, depends_on: [before], output: decision}
  - {id: after, type: tool, tool_name: count, tool_args: {}, depends_on: [gate], output: again}
"""


class Model:
    """A server of models on this machine. Each request takes the next of the replies: a text, or calls `{tool: arguments}`."""

    def __init__(self):
        self.replies = []
        self.requests = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model.requests.append(request)
                reply = model.replies.pop(0)
                message = {"role": "assistant"}
                if isinstance(reply, dict):
                    calls = enumerate(reply.items())
                    message["content"] = None
                    message["tool_calls"] = [
                        {
                            "index": n,
                            "id": f"c{n}",
                            "type": "function",
                            "function": {"name": name, "arguments": json.dumps(given)},
                        }
                        for n, (name, given) in calls
                    ]
                else:
                    message["content"] = reply
                usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
                finish = "tool_calls" if isinstance(reply, dict) else "stop"
                head = {"id": "r", "created": 1, "model": request["model"], "usage": usage}
                if request.get("stream"):
                    choice = {"index": 0, "delta": message, "finish_reason": finish}
                    chunk = {**head, "object": "chat.completion.chunk", "choices": [choice]}
                    body, kind = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", "text/event-stream"
                else:
                    choice = {"index": 0, "message": message, "finish_reason": finish}
                    body, kind = (
                        json.dumps({**head, "object": "chat.completion", "choices": [choice]}),
                        "application/json",
                    )
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def gateway(self):
        url = f"http://127.0.0.1:{self._server.server_port}/v1"
        return ProviderGateway(environment={"HOTCELL_MODEL_URL": url}, model="anything")

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def model():
    model = Model()
    yield model
    model.close()


@pytest.fixture
def host(model):
    return Host(isolated=True, gateway=model.gateway)


@pytest.fixture
def write(tmp_path):
    def write(text, name="agent.yaml"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return write


def lookup_account(customer: str) -> dict:
    """Finds an account.

    Args:
        customer: The name.
    """
    return {"customer": customer, "balance": 12.5}
