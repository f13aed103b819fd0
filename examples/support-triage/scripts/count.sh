#!/usr/bin/env bash
# Counts messages by sender and by day, the most first.
state=${GRAPH_STATE:-$(cat "$GRAPH_STATE_FILE")}

printf '%s' "$state" | jq -c '
  def count_by(name):
    group_by(name) | map({ key: (.[0] | name), value: length }) | sort_by(-.value) | from_entries;
  .messages | { by_sender: count_by(.domain), by_day: count_by(.date[0:10]) }'
