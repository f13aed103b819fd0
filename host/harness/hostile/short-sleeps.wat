;; asks to be woken at once, again and again
;; expect: out-of-fuel or deadline
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store (i32.const 1016) (i32.const 1))
    (loop $again
      (drop (call $poll (i32.const 1000) (i32.const 2000) (i32.const 1) (i32.const 3000)))
      (br $again))))
