import json, os, urllib.request

state = json.loads(os.environ["GRAPH_STATE"])
request = urllib.request.Request("{WORLD}/third", data=state["second"].encode(), method="POST")
with urllib.request.urlopen(request) as reply:
    print(json.dumps({"third": json.load(reply)["value"], "_next": "last"}))
