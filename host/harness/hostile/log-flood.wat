;; logs without end
;; expect: out-of-fuel or deadline
(component
  (import "hotcell:plugin/log@0.2.0" (instance $log
    (type $levels (enum "trace" "debug" "info" "warn" "error"))
    (export "level" (type $level (eq $levels)))
    (export "log" (func (param "level" $level) (param "message" string)))))
  (core module $memory (memory (export "memory") 1))
  (core instance $memory (instantiate $memory))
  (core func $note (canon lower (func $log "log") (memory (core memory $memory "memory"))))
  (core module $guest
    (import "host" "note" (func $note (param i32 i32 i32)))
    (func (export "run") (result i32)
      (loop $again (call $note (i32.const 4) (i32.const 0) (i32.const 4096)) (br $again))
      (unreachable)))
  (core instance $guest (instantiate $guest (with "host" (instance (export "note" (func $note))))))
  (func $run (result (result)) (canon lift (core func $guest "run")))
  (instance $exports (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $exports)))
