;; uses up the random numbers of the machine
;; expect: out-of-fuel or deadline
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "_start")
    (loop $again
      (drop (call $random (i32.const 4096) (i32.const 4096)))
      (br $again))))
