//! Values in and out, and what is said where they do not fit.

use std::collections::BTreeMap;

use hotcell_plugin::{Error, Json, Value, json, plugin, tool};

plugin! { tools: [order, echo] }

#[derive(Debug, PartialEq, Value)]
#[value(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(Debug, PartialEq, Value)]
#[value(tag = "by")]
enum Payment {
    Card { number: String },
    Cash,
}

#[derive(Debug, PartialEq, Value)]
struct Item {
    name: String,
    price: f64,
    #[value(default = "small")]
    size: Size,
    #[value(skip)]
    hidden: u8,
}

#[derive(Debug, PartialEq, Value)]
#[value(open)]
struct Seen {
    items: Vec<Item>,
    pay: Payment,
}

/// Takes an order.
#[tool]
fn order(items: Vec<Item>, pay: Payment, note: Option<String>, #[value(default = 1)] times: u8) -> Result<Json, Error> {
    if note.as_deref() == Some("fail") {
        return Err(Error::unavailable("closed").with("until", "9:00"));
    }
    let seen = Seen { items, pay };
    Ok(json!({ "seen": seen.encode()?, "times": times }))
}

/// Gives back a number.
#[tool]
fn echo(number: f64) -> Result<f64, Error> {
    Ok(number)
}

fn refused(arguments: Json) -> String {
    match PLUGIN.call_tool("order", arguments) {
        Ok(answer) => format!("accepted: {answer}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn values_go_in_and_come_out() {
    let arguments = json!({ "items": [{ "name": "tea", "price": 3 }, { "name": "pot", "price": 20.5, "size": "large" }],
                            "pay": { "by": "Card", "number": "12" }, "times": 2.0 });
    let answer = PLUGIN.call_tool("order", arguments);
    let items =
        json!([{ "name": "tea", "price": 3, "size": "small" }, { "name": "pot", "price": 20.5, "size": "large" }]);
    let seen = json!({ "items": items, "pay": { "by": "Card", "number": "12" } });
    assert_eq!(answer, Ok(json!({ "seen": seen, "times": 2 })));
}

#[test]
fn what_does_not_fit_is_named_with_its_place() {
    let item = json!({ "name": "tea", "price": 3 });
    let cash = json!({ "by": "Cash" });
    for (arguments, message) in [
        (json!([]), "the argument must be an object; it is a list of 0 items"),
        (json!({ "items": [] }), "argument `pay` is missing; it must be an object"),
        (
            json!({ "items": [], "pay": cash, "tip": 1 }),
            "argument `tip` is not known; known here: `items`, `pay`, `note`, `times`",
        ),
        (
            json!({ "items": [item, { "name": "pot", "price": "much" }], "pay": cash }),
            "argument `items[1].price` must be a number; it is the text `much`",
        ),
        (
            json!({ "items": [{ "name": "pot" }], "pay": cash }),
            "argument `items[0].price` is missing; it must be a number",
        ),
        (
            json!({ "items": [{ "name": "pot", "price": 1, "hidden": 1 }], "pay": cash }),
            "argument `items[0].hidden` is not known; known here: `name`, `price`, `size`",
        ),
        (
            json!({ "items": [{ "name": "pot", "price": 1, "size": "huge" }], "pay": cash }),
            "argument `items[0].size` must be one of `small`, `large`; it is the text `huge`",
        ),
        (json!({ "items": {}, "pay": cash }), "argument `items` must be a list; it is an object with 0 names"),
        (
            json!({ "items": [], "pay": { "by": "Gold" } }),
            "argument `pay.by` must be one of `Card`, `Cash`; it is the text `Gold`",
        ),
        (json!({ "items": [], "pay": {} }), "argument `pay.by` is missing; it must be one of `Card`, `Cash`"),
        (json!({ "items": [], "pay": { "by": "Card" } }), "argument `pay.number` is missing; it must be a text"),
        (
            json!({ "items": [], "pay": { "by": "Cash", "number": "1" } }),
            "argument `pay.number` is not known; known here: `by`",
        ),
        (
            json!({ "items": [], "pay": cash, "times": 256 }),
            "argument `times` must be a whole number from 0 to 255; it is the number `256`",
        ),
        (
            json!({ "items": [], "pay": cash, "times": 1.5 }),
            "argument `times` must be a whole number from 0 to 255; it is the number `1.5`",
        ),
        (json!({ "items": [], "pay": cash, "note": false }), "argument `note` must be a text; it is `false`"),
    ] {
        assert_eq!(refused(arguments), format!("invalid-input: {message}"));
    }
}

#[test]
fn errors_of_the_function_keep_their_kind_and_facts() {
    let error = PLUGIN.call_tool("order", json!({ "items": [], "pay": { "by": "Cash" }, "note": "fail" })).err();
    assert_eq!(error, Some(Error::unavailable("closed").with("until", "9:00")));
    assert_eq!(refused(json!({ "items": [], "pay": { "by": "Cash" }, "note": null, "times": 3 })), {
        let seen = json!({ "seen": { "items": [], "pay": { "by": "Cash" } }, "times": 3 });
        format!("accepted: {seen}")
    });
    let unknown = PLUGIN.call_tool("ordr", json!({})).map_err(|error| error.to_string());
    assert_eq!(unknown, Err("invalid-input: there is no tool `ordr` here; known: `order`, `echo`".to_owned()));
}

#[test]
fn numbers_are_written_as_people_write_them() {
    for (number, written) in [(3.0, "3"), (0.1, "0.1"), (-2.5, "-2.5"), (1e300, "1e+300")] {
        assert_eq!(number.encode().map(|json| json.to_string()), Ok(written.to_owned()));
    }
    assert!(f64::NAN.encode().is_err_and(|error| error.message().contains("not a number that JSON can say")));
    assert_eq!(PLUGIN.call_tool("echo", json!({ "number": 3 })), Ok(json!(3)));
}

#[test]
fn open_structs_pass_over_what_they_do_not_know() {
    let seen = Seen::decode(json!({ "items": [], "pay": { "by": "Cash" }, "more": 1 }));
    assert_eq!(seen, Ok(Seen { items: Vec::new(), pay: Payment::Cash }));
    let map = BTreeMap::<String, u8>::decode(json!({ "a": 1, "b": -1 })).map_err(|mismatch| mismatch.to_string());
    assert_eq!(map, Err("value `b` must be a whole number from 0 to 255; it is the number `-1`".to_owned()));
}
