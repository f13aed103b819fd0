raise SystemExit("no ticket header")
