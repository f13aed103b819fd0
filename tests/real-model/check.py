"""Looks whether what was exchanged with a real model was well-formed, and whether the run came to its end."""

import json
import sys


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


exchanges, events = lines(sys.argv[1]), lines(sys.argv[2])
answered = 0
for exchange in exchanges:
    request = exchange["request"]
    assert request["messages"], exchange
    for message in request["messages"]:
        assert message["role"] in {"system", "user", "assistant", "tool"}, message
    reply = exchange.get("reply")
    if reply:
        answered += 1
        assert isinstance(reply.get("content", ""), str), reply
        for call in reply.get("tool_calls", []):
            assert call["name"] and isinstance(call["arguments"], str), call
result = events[-1]
assert result["event"] == "result" and result["status"] == "completed", result
assert "tides.md" in result["output"], result
assert answered >= 2, exchanges
print(f"{len(exchanges)} requests, {answered} answered, all well-formed; the run ended with: {result['output']}")
