i=0
while (( i < 30000 )); do (( i += 1 )); done
echo $i
