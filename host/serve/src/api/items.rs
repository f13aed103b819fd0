//! The store: JSON objects under keys in namespaces, which outlive runs and threads.

use axum::Json;
use axum::extract::State;
use http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::listed::Listed;
use super::params::bad;
use super::{extract, page};
use crate::items::{Item, MOST_BYTES, MOST_ITEMS, Wanted};
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::view::{Object, time};

/// Labels of a namespace.
const LABELS: usize = 16;
/// Bytes of a label.
const LABEL: usize = 128;
/// Bytes of a key.
const KEY: usize = 512;
/// Bytes of a value.
const VALUE: usize = 256 << 10;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(put, get, delete)).routes(routes!(search)).routes(routes!(namespaces))
}

/// An item of the store.
#[derive(Serialize, ToSchema)]
#[schema(as = StoreItem)]
struct ItemView {
    /// The labels of its namespace
    namespace: Vec<String>,
    /// Its key
    key: String,
    /// Its value
    #[schema(value_type = Object)]
    value: Object,
    /// When it was first kept
    #[schema(format = DateTime)]
    created_at: String,
    /// When its value was last changed
    #[schema(format = DateTime)]
    updated_at: String,
}

impl ItemView {
    fn of(item: Item) -> Self {
        ItemView {
            namespace: labels(&item.namespace),
            key: item.key,
            value: item.value,
            created_at: time(item.created),
            updated_at: time(item.updated),
        }
    }
}

fn labels(namespace: &str) -> Vec<String> {
    namespace.split('.').map(str::to_owned).collect()
}

/// The namespace of these labels.
fn namespace(labels: &[String]) -> Result<String, Problem> {
    if labels.is_empty() {
        return Err(Problem::unprocessable("the namespace has no label"));
    }
    prefix(labels)
}

/// The beginning of a namespace, which may have no label.
fn prefix(labels: &[String]) -> Result<String, Problem> {
    let is_label = |label: &&String| {
        (1..=LABEL).contains(&label.len()) && !label.contains('.') && !label.contains(char::is_control)
    };
    let wrong = || {
        let detail = format!(
            "a namespace has at most {LABELS} labels of 1 to {LABEL} bytes, without dots and control characters"
        );
        Problem::unprocessable(detail)
    };
    let fits = labels.len() <= LABELS && labels.iter().all(|label| is_label(&label));
    if fits { Ok(labels.join(".")) } else { Err(wrong()) }
}

fn check_key(key: &str) -> Result<(), Problem> {
    match (1..=KEY).contains(&key.len()) && !key.contains(char::is_control) {
        true => Ok(()),
        false => Err(Problem::unprocessable(format!(
            "`{}` is not a valid key: it has to have 1 to {KEY} bytes and no control characters",
            shown(key)
        ))),
    }
}

/// Refuses what is said and not done here.
fn refuse(not_done: &[(&str, bool, &str)]) -> Result<(), Problem> {
    match not_done.iter().find(|(_, is_said, _)| *is_said) {
        None => Ok(()),
        Some((name, _, why)) => Err(Problem::unprocessable(format!("`{name}` is not supported: {why}"))),
    }
}

/// An item that is to be kept.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ItemPut {
    /// The labels of its namespace
    #[schema(min_items = 1, max_items = 16)]
    namespace: Vec<String>,
    /// Its key
    #[schema(min_length = 1, max_length = 512)]
    key: String,
    /// Its value: at most 256 KiB
    #[schema(value_type = Object)]
    value: Object,
    /// `false`: items are found by their namespace and by members of their value
    #[schema(value_type = Option<bool>)]
    index: Option<Value>,
    /// Items are kept until they are removed
    ttl: Option<f64>,
}

/// Keep an item of the store, in the place of the one that is there
#[utoipa::path(
    put, path = "/store/items", tag = "Store", security(("key" = ["run"])),
    request_body = ItemPut, responses((status = 204, description = "It is kept"))
)]
async fn put(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<ItemPut>,
) -> Result<StatusCode, Problem> {
    refuse(&[
        (
            "index",
            wanted.index.is_some_and(|index| index != Value::Bool(false)),
            "values are not indexed by their meaning",
        ),
        ("ttl", wanted.ttl.is_some(), "items are kept until they are removed"),
    ])?;
    let namespace = namespace(&wanted.namespace)?;
    check_key(&wanted.key)?;
    let bytes = Value::Object(wanted.value.clone()).to_string().len();
    if bytes > VALUE {
        let detail = format!("the value has {bytes} bytes; an item may have {VALUE}");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail).with("limit", VALUE));
    }
    match server.store().put_item(&namespace, &wanted.key, &wanted.value)? {
        true => Ok(StatusCode::NO_CONTENT),
        false => {
            let detail =
                format!("the store is full: it has room for {MOST_ITEMS} items and {MOST_BYTES} bytes; remove some");
            Err(Problem::conflict(detail).kind("store-full", "The store is full"))
        }
    }
}

/// Which item is meant.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ItemNamed {
    /// The labels of its namespace
    #[schema(min_items = 1, max_items = 16)]
    namespace: Vec<String>,
    /// Its key
    #[schema(min_length = 1, max_length = 512)]
    key: String,
}

/// Remove an item of the store, if it is there
#[utoipa::path(
    delete, path = "/store/items", tag = "Store", security(("key" = ["run"])),
    request_body = ItemNamed, responses((status = 204, description = "It is not there any more"))
)]
async fn delete(
    State(server): State<Server>,
    extract::Json(named): extract::Json<ItemNamed>,
) -> Result<StatusCode, Problem> {
    let namespace = namespace(&named.namespace)?;
    check_key(&named.key)?;
    server.store().delete_item(&namespace, &named.key)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Look at an item of the store
#[utoipa::path(
    get, path = "/store/items", tag = "Store", security(("key" = ["run", "operate"])),
    params(
        ("namespace" = Vec<String>, Query, style = Form, explode, description = "The labels of its namespace, each for itself or with dots in between"),
        ("key" = String, Query, description = "Its key"),
    ),
    responses((status = 200, body = ItemView))
)]
async fn get(State(server): State<Server>, uri: Uri) -> Result<Json<ItemView>, Problem> {
    let (mut found, mut key) = (Vec::new(), None);
    for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        match &*name {
            "namespace" => found.push(value.into_owned()),
            "key" if key.is_none() => key = Some(value.into_owned()),
            "key" => return Err(bad("`key` is given twice")),
            "refresh_ttl" => {
                return Err(Problem::unprocessable(
                    "`refresh_ttl` is not supported: items are kept until they are removed",
                ));
            }
            _ => return Err(bad(format!("unknown query parameter `{}`", shown(&name)))),
        }
    }
    if let [only] = &found[..] {
        found = labels(only);
    }
    let (namespace, key) = (namespace(&found)?, key.ok_or_else(|| bad("`key` is missing"))?);
    check_key(&key)?;
    let item = server.store().item(&namespace, &key)?;
    item.map(|item| Json(ItemView::of(item))).ok_or_else(|| {
        Problem::not_found(format!("there is no item `{}` in the namespace `{}`", shown(&key), shown(&namespace)))
    })
}

/// Which items are wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ItemSearch {
    /// The first labels of their namespace
    #[schema(max_items = 16)]
    namespace_prefix: Option<Vec<String>>,
    /// Values of members of theirs
    #[schema(value_type = Option<Object>)]
    filter: Option<Object>,
    /// How many at most
    #[schema(minimum = 1, maximum = 1000, default = 10)]
    #[serde(default, deserialize_with = "extract::whole")]
    limit: Option<usize>,
    /// How many are left out before the first one
    #[schema(minimum = 0, maximum = 10000, default = 0)]
    #[serde(default, deserialize_with = "extract::whole")]
    offset: Option<usize>,
    /// Items are not found by the meaning of a text
    query: Option<String>,
    /// Items are kept until they are removed
    refresh_ttl: Option<bool>,
}

/// Items that were found.
#[derive(Serialize, ToSchema)]
struct ItemsFound {
    /// The items, in the order of their namespaces and keys
    items: Vec<ItemView>,
}

/// Find items of the store
#[utoipa::path(
    post, path = "/store/items/search", tag = "Store", security(("key" = ["run", "operate"])),
    request_body = ItemSearch, responses((status = 200, body = ItemsFound))
)]
async fn search(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<ItemSearch>,
) -> Result<Json<ItemsFound>, Problem> {
    let filter = wanted.filter.unwrap_or_default();
    let operator =
        |value: &Value| value.as_object().is_some_and(|value| value.keys().any(|name| name.starts_with('$')));
    refuse(&[
        ("query", wanted.query.is_some_and(|query| !query.is_empty()), "values are not indexed by their meaning"),
        ("refresh_ttl", wanted.refresh_ttl == Some(true), "items are kept until they are removed"),
        ("filter", filter.values().any(operator), "a member has a value or has not; there are no operators"),
    ])?;
    let (limit, offset) = page::bounds(wanted.limit, wanted.offset)?;
    let prefix = prefix(&wanted.namespace_prefix.unwrap_or_default())?;
    let mut items = Listed::new();
    server.store().items(&Wanted { prefix, filter, limit, offset }, |item| items.push(ItemView::of(item)))?;
    Ok(Json(ItemsFound { items: items.into_all() }))
}

/// Which namespaces are wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NamespaceSearch {
    /// Their first labels
    #[schema(max_items = 16)]
    prefix: Option<Vec<String>>,
    /// Their last labels
    #[schema(max_items = 16)]
    suffix: Option<Vec<String>>,
    /// How many labels of each are shown
    #[schema(minimum = 1, maximum = 16)]
    #[serde(default, deserialize_with = "extract::whole")]
    max_depth: Option<usize>,
    /// How many at most
    #[schema(minimum = 1, maximum = 1000, default = 10)]
    #[serde(default, deserialize_with = "extract::whole")]
    limit: Option<usize>,
    /// How many are left out before the first one
    #[schema(minimum = 0, maximum = 10000, default = 0)]
    #[serde(default, deserialize_with = "extract::whole")]
    offset: Option<usize>,
}

/// Namespaces that were found.
#[derive(Serialize, ToSchema)]
struct NamespacesFound {
    /// Their labels
    namespaces: Vec<Vec<String>>,
}

/// List the namespaces of the store that have items
#[utoipa::path(
    post, path = "/store/namespaces", tag = "Store", security(("key" = ["run", "operate"])),
    request_body = NamespaceSearch, responses((status = 200, body = NamespacesFound))
)]
async fn namespaces(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<NamespaceSearch>,
) -> Result<Json<NamespacesFound>, Problem> {
    let (limit, offset) = page::bounds(wanted.limit, wanted.offset)?;
    let (first, last) = (wanted.prefix.unwrap_or_default(), wanted.suffix.unwrap_or_default());
    prefix(&first)?;
    prefix(&last)?;
    let depth = wanted.max_depth.unwrap_or(LABELS);
    if !(1..=LABELS).contains(&depth) {
        return Err(Problem::unprocessable(format!("`max_depth` has to be a number from 1 to {LABELS}")));
    }
    let fits = |name: &str| {
        let mut labels = labels(name);
        let is_wanted = labels.starts_with(&first) && labels.ends_with(&last);
        labels.truncate(depth);
        is_wanted.then(|| labels.join("."))
    };
    let found = server.store().namespaces(fits, limit, offset)?;
    Ok(Json(NamespacesFound { namespaces: found.iter().map(|name| labels(name)).collect() }))
}
