declare -A ages=([ann]=3 [bob]=5)
list=(one "two words" three)
sum=0; for n in {1..5}; do (( sum += n )); done
case "${list[1]}" in two*) kind=pair;; *) kind=other;; esac
text="Hello, World"
while IFS=: read -r k v; do pairs+="$k=$v;"; done <<< $'x:1\ny:2'
printf '%s|%s|%d|%s|%s|%s|%s|%s\n' "${ages[bob]}" "${#list[@]}" "$sum" "$kind" "${text,,}" "${text/World/There}" "${text:7:3}" "$pairs"
echo "a1b22" | grep -oE '[0-9]+' | paste -sd+ - 
echo "b,2" | awk -F, '{ print $2 + 1, toupper($1) }'
printf 'x\ny\n' | sed -n 's/y/z/p'
echo '[{"n":1},{"n":2}]' | jq -c 'map(.n) | add, (.[0] // null)'
f() { local inner=1; return 4; }; f; echo "status $?" >&2
[[ abc =~ ^a(.)c$ ]] && echo "${BASH_REMATCH[1]}"
seq 3 | tac | tr '\n' ' ' | cut -d' ' -f1
echo "$0" "$#"
