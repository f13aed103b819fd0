;; begins with a table of four billion entries
;; expect: out-of-memory or refused
(module (memory (export "memory") 1)
  (table 4000000000 funcref)
  (func (export "_start")))
