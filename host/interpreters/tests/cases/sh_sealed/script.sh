found=""
for path in /etc/passwd /proc/self /proc/cpuinfo ../graph.yaml /root /work /bin/sh; do [ -e "$path" ] && found="$found $path"; done
for name in PATH_SECRET CARGO_MANIFEST_DIR OPENAI_API_KEY; do [ -n "${!name:-}" ] && found="$found $name"; done
printf '{"found": "[%s]"}\n' "$found"
