;; wants to catch the end of its fuel and to go on
;; expect: refused
(module (memory (export "memory") 1)
  (func $spin (loop $again (br $again)))
  (func (export "_start")
    (loop $again (block $caught (try_table (catch_all $caught) (call $spin))) (br $again))))
