// SPDX-License-Identifier: Apache-2.0
//! Parses request lines. An unknown member is refused, because a misspelt name would otherwise have no
//! effect.

use super::protocol::ControlRequest;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt::{self, Formatter};

/// ID of the request, if the ID was readable, and the error message.
pub type Refusal = (Option<u64>, String);

/// Parses a request and its ID. Returns `None` for an empty line.
pub fn parse(line: &[u8]) -> Result<Option<(u64, ControlRequest)>, Refusal> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let Members(mut object, twice) = serde_json::from_slice(line).map_err(|error| {
        (None, format!("the request is not a JSON object: {error}; send lines such as {{\"id\":1,\"request\":\"ports\"}}"))
    })?;
    let id = object.remove("id").filter(|_| twice.as_deref() != Some("id")).and_then(|id| id.as_u64());
    let id = id.ok_or_else(|| {
        (None, "the request has no \"id\"; add one, an integer from 0 that the answer repeats".to_owned())
    })?;
    let wrong = |sentence| (Some(id), format!("the request is not understood: {sentence}"));
    if let Some(name) = twice {
        return Err(wrong(format!("it has \"{name}\" twice; give each member once")));
    }
    let names: Vec<String> = object.keys().filter(|name| *name != "request").cloned().collect();
    let request: ControlRequest =
        serde_json::from_value(Value::Object(object)).map_err(|error| wrong(error.to_string()))?;
    let members = request.members();
    match names.iter().find(|name| !members.contains(&name.as_str())) {
        None => Ok(Some((id, request))),
        Some(name) if members.is_empty() => {
            Err(wrong(format!("unknown field `{name}`; this request has no fields but `id` and `request`")))
        }
        Some(name) => Err(wrong(format!("unknown field `{name}`, expected `{}`", members.join("`, `")))),
    }
}

/// Members of a JSON object, and the first name that occurs more than once.
struct Members(Map<String, Value>, Option<String>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        /// Maximum number of members kept. Every request has fewer.
        const MEMBERS_MAX: usize = 16;
        let mut members = Members(Map::new(), None);
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            if members.0.insert(name.clone(), value).is_some() {
                members.1.get_or_insert(name);
            }
            if members.0.len() > MEMBERS_MAX {
                return Err(A::Error::custom(format!("more than {MEMBERS_MAX} members")));
            }
        }
        Ok(members)
    }
}
