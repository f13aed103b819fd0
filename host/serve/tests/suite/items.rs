//! The store.

use serde_json::{Value, json};

use crate::desk::{Desk, ECHO, ok, problem};

impl Desk {
    async fn put(&self, body: Value) -> u16 {
        self.client
            .put(format!("{}/store/items", self.url))
            .json(&body)
            .send()
            .await
            .expect("a reply")
            .status()
            .as_u16()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn items_are_kept_found_changed_and_removed() {
    let mut desk = Desk::with(&[ECHO]).await;
    assert_eq!(desk.put(json!({ "namespace": ["users", "ada"], "key": "likes", "value": { "tea": true } })).await, 204);
    assert_eq!(desk.put(json!({ "namespace": ["users", "bo"], "key": "likes", "value": { "tea": false } })).await, 204);
    desk.stop().await;
    let desk = desk.again().await;
    for query in ["namespace=users&namespace=ada&key=likes", "namespace=users.ada&key=likes"] {
        let item = ok(desk.get(&format!("/store/items?{query}"))).await;
        assert_eq!(
            (item["namespace"].clone(), item["value"].clone()),
            (json!(["users", "ada"]), json!({ "tea": true }))
        );
    }
    assert_eq!(desk.put(json!({ "namespace": ["users", "ada"], "key": "likes", "value": { "tea": 2 } })).await, 204);
    let search = |body: Value| desk.post("/store/items/search", body);
    let found = ok(search(json!({ "namespace_prefix": ["users"] }))).await;
    assert_eq!(found["items"].as_array().unwrap().len(), 2);
    let found = ok(search(json!({ "namespace_prefix": ["users"], "filter": { "tea": 2 } }))).await;
    assert_eq!((found["items"][0]["namespace"][1].clone(), found["items"][1].clone()), (json!("ada"), Value::Null));
    let named = ok(desk.post("/store/namespaces", json!({ "prefix": ["users"] }))).await;
    assert_eq!(named["namespaces"], json!([["users", "ada"], ["users", "bo"]]));
    let cut = ok(desk.post("/store/namespaces", json!({ "max_depth": 1 }))).await;
    assert_eq!(cut["namespaces"], json!([["users"]]));
    let item = json!({ "namespace": ["users", "ada"], "key": "likes" });
    for _ in 0..2 {
        ok(desk.delete("/store/items").json(&item)).await;
    }
    assert_eq!(problem(desk.get("/store/items?namespace=users.ada&key=likes")).await["status"], 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_item_is_refused_and_keeps_nothing() {
    let desk = Desk::with(&[ECHO]).await;
    let large = "x".repeat(256 << 10);
    for (body, status) in [
        (json!({}), 422),
        (json!({ "namespace": [], "key": "k", "value": {} }), 422),
        (json!({ "namespace": ["a.b"], "key": "k", "value": {} }), 422),
        (json!({ "namespace": [""], "key": "k", "value": {} }), 422),
        (json!({ "namespace": vec!["a"; 17], "key": "k", "value": {} }), 422),
        (json!({ "namespace": ["a"], "key": "", "value": {} }), 422),
        (json!({ "namespace": ["a"], "key": "k\n", "value": {} }), 422),
        (json!({ "namespace": ["a"], "key": "k", "value": [] }), 422),
        (json!({ "namespace": ["a"], "key": "k", "value": {}, "ttl": 5 }), 422),
        (json!({ "namespace": ["a"], "key": "k", "value": {}, "index": ["v"] }), 422),
        (json!({ "namespace": ["a"], "key": "k", "value": { "v": large } }), 413),
    ] {
        assert_eq!(desk.put(body.clone()).await, status, "{}", body.to_string().get(..100).unwrap_or_default());
    }
    for (path, body) in [
        ("/store/items/search", json!({ "query": "tea" })),
        ("/store/items/search", json!({ "filter": { "n": { "$gt": 1 } } })),
        ("/store/items/search", json!({ "limit": 0 })),
        ("/store/namespaces", json!({ "max_depth": 0 })),
        ("/store/namespaces", json!({ "match_conditions": [] })),
    ] {
        assert_eq!(problem(desk.post(path, body.clone())).await["status"], 422, "{path} {body}");
    }
    for query in ["", "?key=k", "?namespace=a", "?namespace=a&key=k&key=l", "?namespace=a&key=k&more=1"] {
        let status = problem(desk.get(&format!("/store/items{query}"))).await["status"].clone();
        assert!([json!(400), json!(422)].contains(&status), "{query}: {status}");
    }
    let kept = ok(desk.post("/store/items/search", json!({}))).await;
    assert_eq!(kept["items"], json!([]));
}

/// Of 35 megabytes a search gives what has room, and says how much that is.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_found_has_a_size() {
    let desk = Desk::with(&[ECHO]).await;
    let text = "x".repeat(255_000);
    for at in 0..140 {
        let item = json!({ "namespace": ["a"], "key": format!("k{at}"), "value": { "text": text } });
        assert_eq!(desk.put(item).await / 100, 2);
    }
    let search = |limit: u64| desk.post("/store/items/search", json!({ "namespace_prefix": ["a"], "limit": limit }));
    let refused = problem(search(1000)).await;
    assert_eq!(refused["status"], 422, "{refused}");
    let room = refused["limit"].as_u64().unwrap();
    assert_eq!(ok(search(room)).await["items"].as_array().unwrap().len() as u64, room);
}
