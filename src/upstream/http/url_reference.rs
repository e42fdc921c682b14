//! References that a server names, against the URL that they came from.

use http::Uri;
use http::uri::PathAndQuery;

/// The URL that a reference stands for; `None` where that is of another origin, or no URL.
pub(crate) fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.split('#').next()?;
    if let Some(rest) = reference.strip_prefix("//") {
        return resolve(base, &format!("{}://{rest}", base.scheme_str()?));
    }
    let is_absolute = reference.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    if is_absolute {
        let url: Uri = reference.parse().ok()?;
        return (origin(&url)? == origin(base)?).then_some(url);
    }
    let path = match reference.as_bytes().first() {
        Some(b'/') => reference.to_owned(),
        Some(b'?') => format!("{}{reference}", base.path()),
        _ => {
            let directory = base.path().rsplit_once('/').map_or("", |(directory, _)| directory);
            format!("{directory}/{reference}")
        }
    };
    let mut parts = base.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(without_dots(&path)).ok()?);
    Uri::from_parts(parts).ok()
}

fn origin(url: &Uri) -> Option<(String, String, u16)> {
    let scheme = url.scheme_str()?.to_ascii_lowercase();
    let usual = match scheme.as_str() {
        "https" => 443,
        _ => 80,
    };
    let port = url.port_u16().unwrap_or(usual);
    Some((scheme, url.host()?.to_ascii_lowercase(), port))
}

/// A path without its `.` and `..` segments.
fn without_dots(path: &str) -> String {
    let (path, query) = match path.find('?') {
        Some(at) => path.split_at(at),
        None => (path, ""),
    };
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_resolved_within_its_origin() {
        let base: Uri = "http://Host:8000/api/sse?key=1".parse().unwrap();
        let resolved = |text: &str| resolve(&base, text).map(|url| url.to_string());
        let inside = [
            ("/messages?s=1", "http://Host:8000/messages?s=1"),
            ("messages/?s=1#x", "http://Host:8000/api/messages/?s=1"),
            ("../m", "http://Host:8000/m"),
            ("?s=1", "http://Host:8000/api/sse?s=1"),
            ("/m?to=http://x", "http://Host:8000/m?to=http://x"),
        ];
        for (reference, expected) in inside {
            assert_eq!(resolved(reference).as_deref(), Some(expected));
        }
        assert!(resolved("http://host:8000/m?s=1").is_some());
        assert!(resolved("//host:8000/m").is_some());
        for outside in
            ["http://host/m", "https://host:8000/m", "//other:8000/m", "ftp://host:8000/"]
        {
            assert_eq!(resolved(outside), None, "{outside}");
        }
        let base: Uri = "https://host/sse".parse().unwrap();
        assert!(resolve(&base, "https://host:443/m").is_some());
    }
}
