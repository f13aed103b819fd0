import json, os

reached = []
for path in ("/etc/passwd", "/proc/self/environ", "../graph.yaml", "/", "//etc/passwd"):
    try:
        with open(path, "rb") as f:
            reached.append(path)
    except OSError:
        pass
for attempt in ("import socket; socket.create_connection(('127.0.0.1', 9), 1)", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/', timeout=1)",
                "import subprocess; subprocess.run(['true'])", "os.system('true') == 0 or 1/0", "os.fork()", "import threading; threading.Thread(target=print).start()"):
    try:
        exec(attempt)
        reached.append(attempt)
    except Exception as error:
        pass
print(json.dumps({"reached": reached, "listing": os.listdir("/") if os.path.isdir("/") else []}))
