import json

print(json.dumps({"a": float("nan")}))
