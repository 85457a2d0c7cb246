// SPDX-License-Identifier: GPL-2.0
//! Requests and replies as JSON.

use super::Answer;
use serde_json::{json, Value};

/// One request.
#[derive(Debug)]
pub struct Request {
    /// Returned in the reply.
    pub id: Value,
    /// The command.
    pub command: String,
    /// The whole object: arguments are its other members.
    pub args: Value,
}

/// Understands a line.
pub fn parse(line: &[u8]) -> Result<Request, String> {
    let args: Value = serde_json::from_slice(line).map_err(|e| format!("not JSON: {e}"))?;
    let command = args
        .get("cmd")
        .and_then(Value::as_str)
        .ok_or("no cmd")?
        .to_owned();
    let id = args.get("id").cloned().unwrap_or_default();
    Ok(Request { id, command, args })
}

/// The reply to the request with this id.
pub fn reply(id: Value, answer: Answer) -> Value {
    match answer {
        Ok(result) => json!({"id": id, "ok": true, "result": result}),
        Err(error) => json!({"id": id, "ok": false, "error": error}),
    }
}

impl Request {
    /// An argument, if given and not null.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.args.get(name).filter(|value| !value.is_null())
    }

    fn typed<T>(
        &self,
        name: &str,
        kind: &str,
        convert: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let wrong = || format!("{}: {name} must be {kind}", self.command);
        self.get(name)
            .map(|value| convert(value).ok_or_else(wrong))
            .transpose()
    }

    /// A number. Text is taken too: command line tools pass arguments as they are.
    pub fn number(&self, name: &str) -> Result<Option<u64>, String> {
        self.typed(name, "a number", |value| {
            value
                .as_u64()
                .or_else(|| value.as_str().and_then(|text| text.parse().ok()))
        })
    }

    /// A number that is an index.
    pub fn index(&self, name: &str) -> Result<Option<usize>, String> {
        Ok(self
            .number(name)?
            .map(|n| usize::try_from(n).unwrap_or(usize::MAX)))
    }

    /// A truth value.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, String> {
        self.typed(name, "true or false", |value| {
            value
                .as_bool()
                .or_else(|| value.as_str().and_then(|text| text.parse().ok()))
        })
    }

    /// Text.
    pub fn text(&self, name: &str) -> Result<Option<&str>, String> {
        self.get(name)
            .map(|value| {
                value
                    .as_str()
                    .ok_or_else(|| format!("{}: {name} must be text", self.command))
            })
            .transpose()
    }

    /// Text that must be there.
    pub fn need_text(&self, name: &str) -> Result<&str, String> {
        self.text(name)?
            .ok_or_else(|| format!("{}: {name} is missing", self.command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        let request = parse(br#"{"id":1,"cmd":"x","n":3,"t":"4","b":"true","z":null}"#).unwrap();
        assert_eq!(request.number("n"), Ok(Some(3)));
        assert_eq!(request.number("t"), Ok(Some(4)));
        assert_eq!(request.number("z"), Ok(None));
        assert_eq!(request.number("b"), Err("x: b must be a number".into()));
        assert_eq!(request.flag("b"), Ok(Some(true)));
        assert_eq!(request.need_text("q"), Err("x: q is missing".into()));
        assert_eq!(request.text("n"), Err("x: n must be text".into()));
    }

    #[test]
    fn lines_that_are_no_requests() {
        for line in [
            &b""[..],
            b"{",
            b"[]",
            b"{\"id\":1}",
            b"{\"cmd\":5}",
            b"\xff",
        ] {
            assert!(parse(line).is_err());
        }
    }

    #[test]
    fn replies() {
        assert_eq!(
            reply(json!(7), Ok(json!(1))),
            json!({"id": 7, "ok": true, "result": 1})
        );
        assert_eq!(
            reply(Value::Null, Err("no".into())),
            json!({"id": null, "ok": false, "error": "no"})
        );
    }
}
