;; loops before it is even called
;; expect: out-of-fuel or deadline
(module (memory (export "memory") 1)
  (func $loop (loop $again (br $again)))
  (start $loop)
  (func (export "_start")))
