"""A server of tools that misbehaves on request. Needs nothing but Python 3.

The first argument says how it starts; the tool that is called says what happens then.
"""

import base64
import json
import os
import subprocess
import sys
import threading
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "normal"
LOCK = threading.Lock()
CANCELLED = []
WAITING = {}
EXTRA = []
MET = []
MEETING = threading.Condition()


def send(message):
    line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    with LOCK:
        sys.stdout.write(line)
        sys.stdout.flush()


def raw(text):
    with LOCK:
        sys.stdout.write(text)
        sys.stdout.flush()


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def tool(name, **more):
    return {"name": name, "description": "does " + name, "inputSchema": {"type": "object"}, **more}


NAMES = """echo shape sleep cancelled die flood_line flood_logs flood_forever garbage garbage_forever wrong_id refuse
change ask ask_url env spawn stderr progress large unreadable ask_later meet deaf""".split()


def tools(params):
    if MODE == "thousands":
        page = int((params or {}).get("cursor") or 0)
        listed = [tool(f"t{page}-{number}") for number in range(500)]
        return {"tools": listed, "nextCursor": str(page + 1)}
    if MODE == "endless":
        return {"tools": [], "nextCursor": "again"}
    if MODE == "control":
        return {"tools": [tool("good"), tool("bad\x1b[2J")]}
    if MODE == "twice":
        return {"tools": [tool("same"), tool("same")]}
    if MODE == "slow_list" and EXTRA:
        time.sleep(1000)
    if MODE == "pages":
        page = int((params or {}).get("cursor") or 0)
        more = {} if page == 3 else {"nextCursor": str(page + 1)}
        return {"tools": [tool(f"page-{page}")], **more}
    return {"tools": [tool(name) for name in NAMES + EXTRA]}


def ask(params):
    number = f"q{len(WAITING)}"
    WAITING[number] = answer = {"done": threading.Event()}
    send({"id": number, "method": "elicitation/create", "params": params})
    answer["done"].wait(60)
    return answer.get("message", {})


def call(number, params):
    name, arguments = params["name"], params.get("arguments", {})
    if name == "echo":
        return text(arguments.get("text", ""), structuredContent=arguments)
    if name == "shape":
        image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"12345").decode()}
        return {"content": [{"type": "text", "text": "see"}, image], "isError": True}
    if name == "sleep":
        time.sleep(arguments.get("seconds", 60))
        return text("slept")
    if name == "cancelled":
        return text(json.dumps(CANCELLED))
    if name == "die":
        print("about to die", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "flood_line":
        with LOCK:
            while True:
                sys.stdout.write("x" * 65536)
    if name == "flood_logs":
        for index in range(arguments["count"]):
            send({"method": "notifications/message", "params": {"level": "info", "data": f"line {index}"}})
        return text("flooded")
    if name == "flood_forever":
        line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
        while True:
            raw((line + "\n") * 1000)
    if name == "garbage":
        raw("Listening on stdio\n{\n\n[1, 2]\n" * 20)
        return text("after garbage")
    if name == "garbage_forever":
        while True:
            raw("noise\n" * 100)
    if name == "wrong_id":
        send({"id": 987654, "result": text("to nobody")})
        send({"id": "x", "result": text("to nobody")})
        return None
    if name == "refuse":
        return {"code": -32050, "message": "not today\x1b[0m"}
    if name == "change":
        EXTRA.append("extra")
        send({"method": "notifications/tools/list_changed"})
        return text("changed")
    if name == "extra":
        return text("extra was called")
    if name == "ask":
        schema = {"type": "object", "properties": {
            "name": {"type": "string"}, "count": {"type": "integer", "default": 7}}, "required": ["name"]}
        answer = ask({"message": "Who?\x1b[2J", "requestedSchema": schema})
        return text(json.dumps(answer.get("result", answer.get("error")), sort_keys=True))
    if name == "ask_url":
        answer = ask({"mode": "url", "message": "Go", "url": "http://evil.example", "elicitationId": "1"})
        return text(json.dumps(answer.get("result", answer.get("error"))))
    if name == "ask_later":
        def later():
            while not os.path.exists(arguments["when"]):
                time.sleep(0.01)
            answer = ask({"message": "Anybody?", "requestedSchema": {"type": "object", "properties": {}}})
            part = arguments["answer"] + ".part"
            with open(part, "w") as file:
                json.dump(answer.get("result", answer.get("error")), file)
            os.rename(part, arguments["answer"])
        threading.Thread(target=later, daemon=True).start()
        return text("later")
    if name == "meet":
        with MEETING:
            MET.append(number)
            MEETING.notify_all()
            met = MEETING.wait_for(lambda: len(MET) >= arguments["calls"], 60)
        return text("met" if met else "alone")
    if name == "env":
        return text(json.dumps({"env": dict(os.environ), "cwd": os.getcwd()}))
    if name == "spawn":
        child = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return text(json.dumps([os.getpid(), child.pid]))
    if name == "stderr":
        for index in range(20000):
            print("x" * 100, index, file=sys.stderr)
        return text("written")
    if name == "progress":
        token = params["_meta"]["progressToken"]
        for done in range(1, 4):
            send({"method": "notifications/progress",
                  "params": {"progressToken": token, "progress": done, "total": 3, "message": f"step {done}"}})
        time.sleep(arguments.get("pause", 0.2))
        return text("done")
    if name == "large":
        return text("x" * arguments["bytes"])
    if name == "unreadable":
        return {"content": [{"type": "hologram", "data": 1}]}
    return {"code": -32601, "message": "unknown tool"}


def answer_call(message):
    result = call(message["id"], message["params"])
    if result is not None:
        kind = "error" if "code" in result else "result"
        send({"id": message["id"], kind: result})


def main():
    if "STARTS" in os.environ:
        with open(os.environ["STARTS"], "a") as file:
            file.write(f"{os.getpid()}\n")
    if MODE == "hang":
        print("starting up, forever, as", os.getpid(), file=sys.stderr, flush=True)
        time.sleep(1000)
    if MODE == "exit":
        print("missing configuration", file=sys.stderr, flush=True)
        sys.exit(4)
    if MODE == "garbage":
        while True:
            raw("this is not the protocol\n")
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method is None:
            waiting = WAITING.get(number)
            if waiting:
                waiting["message"] = message
                waiting["done"].set()
        elif method == "initialize":
            if MODE == "error":
                send({"id": number, "error": {"code": -32000, "message": "wrong licence"}})
                continue
            version = "2099-01-01" if MODE == "version" else message["params"]["protocolVersion"]
            result = {"protocolVersion": version,
                      "capabilities": {"tools": {"listChanged": True}, "logging": {}},
                      "serverInfo": {"name": "stranger", "version": "1"}}
            send({"id": number, "result": result})
        elif method == "tools/list":
            send({"id": number, "result": tools(message.get("params"))})
        elif method == "tools/call":
            if message["params"]["name"] == "deaf":
                time.sleep(1000)
            threading.Thread(target=answer_call, args=(message,), daemon=True).start()
        elif method == "notifications/cancelled":
            CANCELLED.append(message["params"].get("requestId"))
        elif number is not None:
            send({"id": number, "error": {"code": -32601, "message": "unknown method"}})


main()
