//! Which calls are equal (contract §7): same caller, same tool, same arguments.

use sha2::{Digest, Sha256};

use crate::rpc::object::{Members, elements};
use crate::rpc::string::string;

/// A digest of scope, tool and arguments; equal for calls that are equal.
pub(crate) type Fingerprint = [u8; 32];

/// The fingerprint of a call, from the raw text of its `params`. `scope` is what else has to be
/// equal: caller, server state, forwarded headers. `None` for a call that carries anything besides
/// `name`, `arguments` and `_meta`: what else it asks for is unknown.
pub(crate) fn fingerprint<'a>(
    scope: impl IntoIterator<Item = &'a [u8]>,
    params: &str,
) -> Option<Fingerprint> {
    let members = Members::parse(params)?;
    let known = |key: &str| matches!(key, "name" | "arguments" | "_meta");
    if !members.iter().all(|member| known(&member.name())) {
        return None;
    }
    let mut hasher = Sha256::new();
    let name = members.text("name")?;
    let mut add = |part: &[u8]| {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    scope.into_iter().for_each(&mut add);
    add(name.as_bytes());
    hash_canonical(&mut hasher, members.get("arguments").unwrap_or("{}"), 0);
    Some(hasher.finalize().into())
}

/// A digest of a JSON value, raw; equal for values in which nothing but key order and white space
/// differs. Numbers count as text.
pub(crate) fn digest(raw: &str) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hash_canonical(&mut hasher, raw, 0);
    hasher.finalize().into()
}

/// Values nested deeper than this are hashed as raw text: equal only if they are written equally.
const DEPTH: usize = 64;

/// Hashes a JSON value so that key order and white space don't matter; numbers count as text.
fn hash_canonical(hasher: &mut Sha256, raw: &str, depth: usize) {
    match raw.as_bytes().first() {
        Some(b'{') if depth < DEPTH => hash_object(hasher, raw, depth),
        Some(b'[') if depth < DEPTH => {
            hasher.update(b"[");
            for element in elements(raw).unwrap_or_default() {
                hash_canonical(hasher, element, depth + 1);
                hasher.update(b",");
            }
            hasher.update(b"]");
        }
        Some(b'"') => match string(raw) {
            Some(text) => {
                hasher.update(b"\"");
                hasher.update((text.len() as u64).to_le_bytes());
                hasher.update(text.as_bytes());
            }
            None => hasher.update(raw),
        },
        _ => hasher.update(raw),
    }
}

/// Hashes an object with its keys in order.
fn hash_object(hasher: &mut Sha256, raw: &str, depth: usize) {
    let Some(members) = Members::parse(raw) else { return hasher.update(raw) };
    let mut members: Vec<_> = members.iter().map(|m| (m.name(), m.value)).collect();
    // Stable, so that of equal keys the last one stays last.
    members.sort_by(|a, b| a.0.cmp(&b.0));
    hasher.update(b"{");
    for (key, value) in members {
        hasher.update((key.len() as u64).to_le_bytes());
        hasher.update(key.as_bytes());
        hash_canonical(hasher, value, depth + 1);
        hasher.update(b",");
    }
    hasher.update(b"}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(who: &str, params: &str) -> Option<Fingerprint> {
        fingerprint([who.as_bytes()], params)
    }

    fn same(a: &str, b: &str) -> bool {
        print("me", a).unwrap() == print("me", b).unwrap()
    }

    #[test]
    fn key_order_white_space_and_escapes_do_not_matter_but_numbers_are_text_s7() {
        let call = |arguments: &str| format!(r#"{{"name":"t","arguments":{arguments}}}"#);
        let base = call(r#"{"a":1,"b":[{"x":"A","y":2}]}"#);
        assert!(same(&base, &call(r#"{ "b" : [ {"y":2, "x":"\u0041"} ], "a":1 }"#)));
        assert!(!same(&base, &call(r#"{"a":1.0,"b":[{"x":"A","y":2}]}"#)));
        assert!(!same(&call(r#"{"a":["b","c"]}"#), &call(r#"{"a":["b,c"]}"#)));
        assert!(same(r#"{"name":"t"}"#, r#"{"name":"t","arguments":{},"_meta":{"x":1}}"#));
        assert_ne!(print("me", &base), print("you", &base));
    }

    #[test]
    fn a_call_that_carries_more_is_never_equal_s7() {
        assert!(print("me", r#"{"name":"t","requestState":"x"}"#).is_none());
    }
}
