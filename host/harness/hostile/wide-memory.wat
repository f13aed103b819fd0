;; wants memory with addresses of 64 bits
;; expect: refused
(module (memory (export "memory") i64 1)
  (func (export "_start")))
