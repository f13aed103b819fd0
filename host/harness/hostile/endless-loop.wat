;; loops without end
;; expect: out-of-fuel or deadline
(module (memory (export "memory") 1)
  (func (export "_start") (loop $again (br $again))))
