print('{"a": 3}', flush=True)
raise RuntimeError("after the output")
