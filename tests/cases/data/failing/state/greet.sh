jq -c '{greeting: ("Hello " + .initial_prompt + "\nand welcome"), words: [3, 4.5], kind: null}' <<< "$GRAPH_STATE"
