;; wants memory that several threads share
;; expect: refused
(module (memory (export "memory") 1 1 shared)
  (func (export "_start")))
