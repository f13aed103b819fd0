print(sorted(name for name in globals() if not name.startswith("__")))
