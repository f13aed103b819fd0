raise RuntimeError("no agent has this name")
