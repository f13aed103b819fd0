import json, os, sys
state = json.loads(os.environ["GRAPH_STATE"])
print(json.dumps({"word": state["word"].upper(), "region": os.environ.get("LLM_AGENT_VAR_REGION"), "home": os.environ.get("HOME"), "name": __name__, "argv": sys.argv, "file": __file__}, ensure_ascii=False))
