;; fills its memory over and over
;; expect: out-of-fuel or deadline
(module (memory (export "memory") 16)
  (func (export "_start")
    (loop $again
      (memory.fill (i32.const 0) (i32.const 7) (i32.const 1048576))
      (br $again))))
