echo "cannot go on" >&2
exit 7
