;; calls itself until the stack ends
;; expect: too-deep or out-of-fuel
(module (memory (export "memory") 1)
  (func $deeper (param i64 i64 i64) (result i64)
    (i64.add (call $deeper (local.get 2) (local.get 0) (i64.add (local.get 1) (i64.const 1))) (local.get 1)))
  (func (export "_start") (drop (call $deeper (i64.const 1) (i64.const 2) (i64.const 3)))))
