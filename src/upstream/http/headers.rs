//! The headers of requests.

use http::HeaderMap;

use crate::upstream::outgoing::Headers;

/// What every request carries with what goes with one message, which wins.
pub(crate) fn with_headers(base: &HeaderMap, more: &Headers) -> HeaderMap {
    let mut headers = base.clone();
    for name in more.iter().flat_map(|more| more.keys()) {
        headers.remove(name);
    }
    for (name, value) in more.iter().flat_map(|more| more.iter()) {
        headers.append(name, value.clone());
    }
    headers
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_headers_of_a_message_replace_configured_ones() {
        let mut base = HeaderMap::new();
        base.insert("x-a", HeaderValue::from_static("1"));
        let mut more = HeaderMap::new();
        more.append("x-a", HeaderValue::from_static("2"));
        more.append("x-a", HeaderValue::from_static("3"));
        let all = with_headers(&base, &Some(Arc::new(more)));
        assert_eq!(all.get_all("x-a").iter().collect::<Vec<_>>(), ["2", "3"]);
    }
}
