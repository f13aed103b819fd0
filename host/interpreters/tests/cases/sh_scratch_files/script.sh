echo hi > /tmp/a
cat /tmp/a
mkdir -p /tmp/d/e && ls /tmp/d
read -r x || echo "no input"
