"""The other side of `hotcell-bench agent-spec`: runs one flow for each line and answers with its seconds.

With two arguments, a file and its inputs, it runs that flow once: the whole process is what is measured then.
"""

import json
import sys
import time

from wayflowcore.agentspec import AgentSpecLoader


def measure(text: str) -> dict:
    return {"upper": text.upper(), "length": len(text)}


flows = {}


def run(path: str, inputs: dict) -> tuple[float, dict]:
    if path not in flows:
        with open(path) as file:
            flows[path] = AgentSpecLoader(tool_registry={"measure": measure}).load_json(file.read())
    begun = time.perf_counter()
    conversation = flows[path].start_conversation(inputs=inputs)
    status = conversation.execute()
    return time.perf_counter() - begun, status.output_values


def main() -> None:
    if len(sys.argv) > 2:
        _, outputs = run(sys.argv[1], json.loads(sys.argv[2]))
        print(json.dumps(outputs))
        return
    for line in sys.stdin:
        wanted = json.loads(line)
        seconds, outputs = run(wanted["path"], wanted["inputs"])
        if outputs != wanted["outputs"]:
            raise RuntimeError(f"it came to {outputs}")
        print(json.dumps(seconds), flush=True)


main()
