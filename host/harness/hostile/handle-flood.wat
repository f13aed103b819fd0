;; opens timers and never closes one
;; expect: too-many-handles
(component
  (import "wasi:io/poll@0.2.0" (instance $poll (export "pollable" (type (sub resource)))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
    (alias outer 1 $pollable (type $p))
    (export "pollable" (type (eq $p)))
    (export "subscribe-duration" (func (param "when" u64) (result (own 1))))))
  (core func $subscribe (canon lower (func $clock "subscribe-duration")))
  (core module $guest
    (import "clock" "subscribe" (func $subscribe (param i64) (result i32)))
    (func (export "run") (result i32)
      (loop $again (drop (call $subscribe (i64.const 1000000000))) (br $again))
      (unreachable)))
  (core instance $guest (instantiate $guest (with "clock" (instance (export "subscribe" (func $subscribe))))))
  (func $run (result (result)) (canon lift (core func $guest "run")))
  (instance $exports (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $exports)))
