import sys, atexit
atexit.register(lambda: print("left"))
print("{}")
sys.exit(5)
