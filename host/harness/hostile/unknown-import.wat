;; imports a function of the host that does not exist
;; expect: refused
(component (import "wasi:keyvalue/store@0.2.0" (instance)))
