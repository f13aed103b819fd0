;; makes a TCP socket, and succeeds if it can
;; expect: denied
(component
  (import "wasi:sockets/network@0.2.0" (instance $network
    (type $codes (enum "unknown" "access-denied" "not-supported" "invalid-argument" "out-of-memory" "timeout"
      "concurrency-conflict" "not-in-progress" "would-block" "invalid-state" "new-socket-limit"
      "address-not-bindable" "address-in-use" "remote-unreachable" "connection-refused" "connection-reset"
      "connection-aborted" "datagram-too-large" "name-unresolvable" "temporary-resolver-failure"
      "permanent-resolver-failure"))
    (export "error-code" (type (eq $codes)))
    (type $families (enum "ipv4" "ipv6"))
    (export "ip-address-family" (type (eq $families)))))
  (alias export $network "error-code" (type $code))
  (alias export $network "ip-address-family" (type $family))
  (import "wasi:sockets/tcp@0.2.0" (instance $tcp (export "tcp-socket" (type (sub resource)))))
  (alias export $tcp "tcp-socket" (type $socket))
  (import "wasi:sockets/tcp-create-socket@0.2.0" (instance $create
    (alias outer 1 $socket (type $s)) (export "tcp-socket" (type $made (eq $s)))
    (alias outer 1 $code (type $c)) (export "error-code" (type $error (eq $c)))
    (alias outer 1 $family (type $f)) (export "ip-address-family" (type $which (eq $f)))
    (export "create-tcp-socket" (func (param "address-family" $which) (result (result (own $made) (error $error)))))))
  (core module $memory (memory (export "memory") 1))
  (core instance $memory (instantiate $memory))
  (core func $make (canon lower (func $create "create-tcp-socket") (memory (core memory $memory "memory"))))
  (core module $guest
    (import "memory" "memory" (memory 1))
    (import "host" "make" (func $make (param i32 i32)))
    (func (export "run") (result i32)
      (call $make (i32.const 0) (i32.const 16))
      (i32.load8_u (i32.const 16))))
  (core instance $guest (instantiate $guest
    (with "memory" (instance $memory)) (with "host" (instance (export "make" (func $make))))))
  (func $run (result (result)) (canon lift (core func $guest "run")))
  (instance $exports (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $exports)))
