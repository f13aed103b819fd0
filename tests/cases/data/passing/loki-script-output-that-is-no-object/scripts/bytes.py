import sys

sys.stdout.buffer.write(b'{"a": "\xff"}')
