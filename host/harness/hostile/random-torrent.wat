;; has a megabyte of random numbers made over and over, nearly without fuel
;; expect: deadline or out-of-fuel
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 18)
  (func (export "_start")
    (loop $again
      (drop (call $random (i32.const 4096) (i32.const 1048576)))
      (br $again))))
