;; hands itself texts that have to be transcoded, nearly without fuel
;; expect: deadline
(component
  (component $reader
    (core module $m
      (memory (export "memory") 500)
      (func (export "allocate") (param i32 i32 i32 i32) (result i32) (i32.const 0))
      (func (export "read") (param i32 i32)))
    (core instance $i (instantiate $m))
    (func (export "read") (param "text" string) (canon lift (core func $i "read")
      (memory (core memory $i "memory")) (realloc (core func $i "allocate")) string-encoding=utf16)))
  (component $writer
    (import "read" (func $read (param "text" string)))
    (core module $memory (memory (export "memory") 250))
    (core instance $memory (instantiate $memory))
    (core func $read (canon lower (func $read) (memory (core memory $memory "memory")) string-encoding=utf8))
    (core module $m (import "reader" "read" (func $read (param i32 i32)))
      (func (export "run") (result i32)
        (loop $again (call $read (i32.const 0) (i32.const 16000000)) (br $again)) (i32.const 0)))
    (core instance $i (instantiate $m (with "reader" (instance (export "read" (func $read))))))
    (func (export "run") (result (result)) (canon lift (core func $i "run"))))
  (instance $reader (instantiate $reader))
  (instance $writer (instantiate $writer (with "read" (func $reader "read"))))
  (instance $exports (export "run" (func $writer "run")))
  (export "wasi:cli/run@0.2.0" (instance $exports)))
