//! Interfaces of WASI that a guest can import and that give it nothing, or not without end.

use crate::support::{cells, load, run, wasm};
use hotcell_budget::{Budget, Limit};
use hotcell_cells::Report;

/// A command component with these imports. `functions` are the host's functions that its core module imports from
/// `host`, each with the instance and the name it is lowered from; `body` defines `$run`, whose result 0 is success.
fn program(imports: &str, functions: &[(&str, &str)], body: &str) -> Vec<u8> {
    let lowered = |(name, from): &(&str, &str)| {
        format!("(core func ${name} (canon lower (func {from}) (memory (core memory $memory \"memory\"))))")
    };
    let handed = |(name, _): &(&str, &str)| format!("(export \"{name}\" (func ${name}))");
    wasm(&format!(
        r#"(component
            {imports}
            (core module $memory (memory (export "memory") 4))
            (core instance $memory (instantiate $memory))
            {lowers}
            (core module $m (import "memory" "memory" (memory 4)) {body} (export "run" (func $run)))
            (core instance $i (instantiate $m
                (with "memory" (instance $memory)) (with "host" (instance {hands}))))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $exports (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $exports)))"#,
        lowers = functions.iter().map(lowered).collect::<String>(),
        hands = functions.iter().map(handed).collect::<String>(),
    ))
}

async fn report(bytes: &[u8]) -> Report<String> {
    let cells = cells();
    let cell = load(&cells, bytes);
    run(&cells, &cell, Budget::default()).await
}

fn denied(report: &Report<String>) -> Vec<String> {
    report.denials.iter().map(|denial| denial.capability.to_string()).collect()
}

const NETWORK: &str = r#"
    (import "wasi:sockets/network@0.2.0" (instance $network
        (export "network" (type (sub resource)))
        (type $codes (enum "unknown" "access-denied" "not-supported" "invalid-argument" "out-of-memory" "timeout"
            "concurrency-conflict" "not-in-progress" "would-block" "invalid-state" "new-socket-limit"
            "address-not-bindable" "address-in-use" "remote-unreachable" "connection-refused" "connection-reset"
            "connection-aborted" "datagram-too-large" "name-unresolvable" "temporary-resolver-failure"
            "permanent-resolver-failure"))
        (export "error-code" (type (eq $codes)))
        (type $families (enum "ipv4" "ipv6"))
        (export "ip-address-family" (type (eq $families)))))
    (alias export $network "network" (type $network))
    (alias export $network "error-code" (type $code))
    (alias export $network "ip-address-family" (type $family))"#;

/// Traps unless the host stored the error of this number at 16.
const FAILED_WITH: &str = r#"
    (func $failed_with (param $code i32)
        (if (i32.ne (i32.load8_u (i32.const 16)) (i32.const 1)) (then (unreachable)))
        (if (i32.ne (i32.load8_u (i32.const 20)) (local.get $code)) (then (unreachable))))"#;
/// `access-denied`, as a call of the function above.
const DENIED: &str = "(call $failed_with (i32.const 1))";
/// `permanent-resolver-failure`.
const UNRESOLVABLE: &str = "(call $failed_with (i32.const 20))";

/// Libraries import sockets for guests that never use them, so the imports are there; what they make is nothing.
#[tokio::test]
async fn attack_50_sockets_can_be_imported_and_not_made() {
    for protocol in ["tcp", "udp"] {
        let imports = format!(
            r#"{NETWORK}
            (import "wasi:sockets/{protocol}@0.2.0" (instance $protocol
                (export "{protocol}-socket" (type (sub resource)))))
            (alias export $protocol "{protocol}-socket" (type $socket))
            (import "wasi:sockets/{protocol}-create-socket@0.2.0" (instance $create
                (alias outer 1 $socket (type $s)) (export "{protocol}-socket" (type $made (eq $s)))
                (alias outer 1 $code (type $c)) (export "error-code" (type $error (eq $c)))
                (alias outer 1 $family (type $f)) (export "ip-address-family" (type $which (eq $f)))
                (export "create-{protocol}-socket" (func (param "address-family" $which)
                    (result (result (own $made) (error $error)))))))"#
        );
        let body = format!(
            r#"(import "host" "make" (func $make (param i32 i32))) {FAILED_WITH}
            (func $run (result i32)
                (call $make (i32.const 0) (i32.const 16)) {DENIED}
                (call $make (i32.const 1) (i32.const 16)) {DENIED}
                (i32.const 0))"#
        );
        let from = format!("$create \"create-{protocol}-socket\"");
        let report = report(&program(&imports, &[("make", &from)], &body)).await;
        assert_eq!(report.result.as_deref(), Ok(""), "{protocol}");
        assert_eq!(denied(&report), ["a raw socket"], "{protocol}");
    }
}

#[tokio::test]
async fn attack_51_names_are_not_looked_up() {
    let imports = format!(
        r#"{NETWORK}
        (import "wasi:sockets/instance-network@0.2.0" (instance $instance
            (alias outer 1 $network (type $n)) (export "network" (type $is (eq $n)))
            (export "instance-network" (func (result (own $is))))))
        (import "wasi:sockets/ip-name-lookup@0.2.0" (instance $lookup
            (alias outer 1 $network (type $n)) (export "network" (type $is (eq $n)))
            (alias outer 1 $code (type $c)) (export "error-code" (type $error (eq $c)))
            (export "resolve-address-stream" (type $stream (sub resource)))
            (export "resolve-addresses" (func (param "network" (borrow $is)) (param "name" string)
                (result (result (own $stream) (error $error)))))))"#
    );
    let body = format!(
        r#"(import "host" "network" (func $network (result i32)))
        (import "host" "resolve" (func $resolve (param i32 i32 i32 i32))) {FAILED_WITH}
        (data (i32.const 1024) "secret.attacker.example") (data (i32.const 1100) "localhost")
        (func $run (result i32)
            (call $resolve (call $network) (i32.const 1024) (i32.const 23) (i32.const 16)) {UNRESOLVABLE}
            (call $resolve (call $network) (i32.const 1100) (i32.const 9) (i32.const 16)) {UNRESOLVABLE}
            (i32.const 0))"#
    );
    let functions = [("network", "$instance \"instance-network\""), ("resolve", "$lookup \"resolve-addresses\"")];
    let report = report(&program(&imports, &functions, &body)).await;
    assert_eq!(report.result.as_deref(), Ok(""));
    assert_eq!(denied(&report), ["a raw socket"]);
    let said = report.denials[0].to_string();
    assert_eq!(said, "`test.wasm` asked for a raw socket, which is not granted; nothing grants it");
}

#[tokio::test]
async fn attack_26_header_fields_end_at_their_limit() {
    let imports = r#"(import "wasi:http/types@0.2.0" (instance $http
        (export "fields" (type $fields (sub resource)))
        (type $errors (variant (case "invalid-syntax") (case "forbidden") (case "immutable")))
        (export "header-error" (type $error (eq $errors)))
        (export "[constructor]fields" (func (result (own $fields))))
        (export "[method]fields.append" (func (param "self" (borrow $fields)) (param "name" string)
            (param "value" (list u8)) (result (result (error $error)))))))"#;
    let functions = [("new", "$http \"[constructor]fields\""), ("append", "$http \"[method]fields.append\"")];
    let body = |times: u32, length: u32| {
        format!(
            r#"(import "host" "new" (func $new (result i32)))
            (import "host" "append" (func $append (param i32 i32 i32 i32 i32 i32)))
            (data (i32.const 1024) "x-a")
            (func $run (result i32) (local $fields i32) (local $left i32)
                (memory.fill (i32.const 4096) (i32.const 97) (i32.const 200000))
                (local.set $fields (call $new))
                (local.set $left (i32.const {times}))
                (loop $next
                    (call $append (local.get $fields) (i32.const 1024) (i32.const 3)
                        (i32.const 4096) (i32.const {length}) (i32.const 16))
                    (if (i32.load8_u (i32.const 16)) (then (return (i32.const 1))))
                    (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
                (i32.const 0))"#
        )
    };
    let few = report(&program(imports, &functions, &body(10, 1_000))).await;
    assert_eq!(few.result.as_deref(), Ok(""));
    // Many small fields and one large one end alike: the guest is told or ended, and the host keeps 64 KiB at most.
    for (times, length) in [(1_000_000, 100), (1, 200_000)] {
        let report = report(&program(imports, &functions, &body(times, length))).await;
        let error = crate::support::error(&report).to_string();
        assert!(error.contains("exited with code 1") || error.contains("size"), "{error}");
        assert_ne!(crate::support::error(&report).limit(), Some(Limit::OutOfFuel));
    }
}

/// What the host keeps for requests that are never sent is the guest's memory: here 60,000 bytes of fields in each of many
/// messages, methods and paths of great length, bodies that are begun.
#[tokio::test]
async fn attack_26_messages_that_are_never_sent_take_the_guests_memory() {
    let imports = r#"(import "wasi:http/types@0.2.0" (instance $http
        (export "fields" (type $fields (sub resource)))
        (export "outgoing-request" (type $request (sub resource)))
        (export "outgoing-body" (type $body (sub resource)))
        (type $errors (variant (case "invalid-syntax") (case "forbidden") (case "immutable")))
        (export "header-error" (type $error (eq $errors)))
        (type $methods (variant (case "get") (case "head") (case "post") (case "put") (case "delete") (case "connect")
            (case "options") (case "trace") (case "patch") (case "other" string)))
        (export "method" (type $method (eq $methods)))
        (export "[constructor]fields" (func (result (own $fields))))
        (export "[method]fields.append" (func (param "self" (borrow $fields)) (param "name" string)
            (param "value" (list u8)) (result (result (error $error)))))
        (export "[method]fields.clone" (func (param "self" (borrow $fields)) (result (own $fields))))
        (export "[constructor]outgoing-request" (func (param "headers" (own $fields)) (result (own $request))))
        (export "[method]outgoing-request.set-path-with-query" (func (param "self" (borrow $request))
            (param "path-with-query" (option string)) (result (result))))
        (export "[method]outgoing-request.set-authority" (func (param "self" (borrow $request))
            (param "authority" (option string)) (result (result))))
        (export "[method]outgoing-request.set-method" (func (param "self" (borrow $request))
            (param "method" $method) (result (result))))
    ))"#;
    let functions = [
        ("new", "$http \"[constructor]fields\""),
        ("append", "$http \"[method]fields.append\""),
        ("clone", "$http \"[method]fields.clone\""),
        ("request", "$http \"[constructor]outgoing-request\""),
        ("path", "$http \"[method]outgoing-request.set-path-with-query\""),
        ("authority", "$http \"[method]outgoing-request.set-authority\""),
        ("method", "$http \"[method]outgoing-request.set-method\""),
    ];
    let body = |before: &str, each: &str, times: u32| {
        format!(
            r#"(import "host" "new" (func $new (result i32)))
            (import "host" "append" (func $append (param i32 i32 i32 i32 i32 i32)))
            (import "host" "clone" (func $clone (param i32) (result i32)))
            (import "host" "request" (func $request (param i32) (result i32)))
            (import "host" "path" (func $path (param i32 i32 i32 i32) (result i32)))
            (import "host" "authority" (func $authority (param i32 i32 i32 i32) (result i32)))
            (import "host" "method" (func $method (param i32 i32 i32 i32) (result i32)))
            (data (i32.const 1024) "x-a")
            (func $run (result i32) (local $fields i32) (local $left i32)
                (memory.fill (i32.const 4096) (i32.const 97) (i32.const 200000))
                (local.set $fields (call $new))
                {before}
                (local.set $left (i32.const {times}))
                (loop $next {each}
                    (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
                (i32.const 0))"#
        )
    };
    let fill = |fields: &str| {
        format!(
            "(call $append {fields} (i32.const 1024) (i32.const 3) (i32.const 4096) (i32.const 60000) (i32.const 16))"
        )
    };
    let copies = (fill("(local.get $fields)"), "(drop (call $clone (local.get $fields)))".to_owned());
    let messages = (String::new(), format!("(local.set $fields (call $new)) {}", fill("(local.get $fields)")));
    let text = "(i32.const 1) (i32.const 4096) (i32.const 60000)";
    let of = |what: &str| (String::new(), format!("(drop (call ${what} (call $request (call $new)) {text}))"));
    let method = "(drop (call $method (call $request (call $new)) (i32.const 9) (i32.const 4096) (i32.const 60000)))";
    let cells = cells();
    for (before, each) in [copies, messages, of("path"), of("authority"), (String::new(), method.to_owned())] {
        let run = async |times| {
            let bytes = program(imports, &functions, &body(&before, &each, times));
            let budget = Budget { memory: hotcell_budget::Bytes::mib(4), ..Budget::default() };
            crate::support::run(&cells, &load(&cells, &bytes), budget).await
        };
        assert_eq!(run(20).await.result.as_deref(), Ok(""), "{each}");
        crate::support::assert_limit(&run(400).await, Limit::OutOfMemory);
    }
}
