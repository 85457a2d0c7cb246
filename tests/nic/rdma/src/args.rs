// SPDX-License-Identifier: GPL-2.0
//! Arguments of control commands. Numbers and truth values may also be given as text.

use serde_json::Value;

/// A text argument.
pub(crate) fn text<'a>(args: &'a Value, name: &str) -> Option<&'a str> {
    args.get(name).and_then(Value::as_str)
}

/// Whether a truth value is there and true.
pub(crate) fn flag(args: &Value, name: &str) -> bool {
    match args.get(name) {
        Some(Value::Bool(b)) => *b,
        Some(Value::String(s)) => s == "true" || s == "1",
        _ => false,
    }
}

/// A number argument, in decimal or `0x` form if it is text.
pub(crate) fn number(args: &Value, name: &str) -> Result<Option<u64>, String> {
    let value = match args.get(name) {
        None => return Ok(None),
        Some(Value::String(s)) => match s.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => s.parse().ok(),
        },
        Some(v) => v.as_u64(),
    };
    value
        .map(Some)
        .ok_or_else(|| format!("{name} is no number"))
}

/// A number argument that fits `T`, or `default` if it is not there.
pub(crate) fn number_or<T: TryFrom<u64>>(
    args: &Value,
    name: &str,
    default: T,
) -> Result<T, String> {
    match number(args, name)? {
        None => Ok(default),
        Some(n) => T::try_from(n).map_err(|_| format!("{name} {n} is too large")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_and_flags_may_be_text() {
        let args = json!({"a": "0x10", "b": "12", "c": 3, "d": "x", "e": "true", "f": true});
        assert_eq!(number(&args, "a"), Ok(Some(16)));
        assert_eq!(number(&args, "b"), Ok(Some(12)));
        assert_eq!(number_or(&args, "c", 0u8), Ok(3));
        assert_eq!(number_or(&args, "z", 7u8), Ok(7));
        assert!(number(&args, "d").is_err());
        assert!(number_or(&json!({"a": 256}), "a", 0u8).is_err());
        assert!(flag(&args, "e") && flag(&args, "f") && !flag(&args, "a"));
    }
}
