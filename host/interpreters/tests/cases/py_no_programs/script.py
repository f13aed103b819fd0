import json, os, subprocess

found = {}
for name, start in {
    "run": lambda: subprocess.run(["git", "diff"], capture_output=True, text=True, check=True),
    "shell": lambda: subprocess.check_output("make all", shell=True),
    "popen": lambda: os.popen("ls").read(),
}.items():
    try:
        found[name] = start()
    except FileNotFoundError as error:
        found[name] = error.filename
print(json.dumps(found))
