;; doubles its work with every level of a recursion
;; expect: out-of-fuel or deadline
(module (memory (export "memory") 1)
  (func $twice (param i32)
    (if (local.get 0) (then
      (call $twice (i32.sub (local.get 0) (i32.const 1)))
      (call $twice (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "_start") (call $twice (i32.const 60))))
