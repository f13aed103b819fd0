import json, urllib.request

with urllib.request.urlopen("{WORLD}/middle") as reply:
    print(json.dumps({"middle": reply.read().decode(), "notes": "from the middle"}))
