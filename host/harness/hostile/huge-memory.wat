;; begins with four gigabytes of memory
;; expect: out-of-memory or refused
(module (memory (export "memory") 65535)
  (func (export "_start")))
