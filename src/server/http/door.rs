//! Who may come in: the name that the service is called by, the page that asks, and the bearer token.
//!
//! Must not know what is asked. Invariant: a token is compared by its digest and in constant time, and once the configuration has had a
//! token, nobody comes in without one.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header, uri::Authority};
use subtle::ConstantTimeEq;

use crate::config::{Config, Http, Right, Token};
use crate::model::ContentHash;

use super::refusal::Refusal;

/// What whoever asks may do, by the configuration that was in force when the request came.
#[derive(Clone, Debug)]
pub struct Grant {
    pub config: Arc<Config>,
    /// The scopes that there are.
    names: Vec<String>,
    /// `None` for the loopback, where the configuration knows no tokens.
    token: Option<Token>,
}

impl Grant {
    /// Returns whether something is allowed in a scope, which need not exist.
    pub fn allows(&self, scope: &str, right: Right) -> bool {
        match &self.token {
            Some(token) => token.allows(scope, right),
            None => right == Right::ScopeRead,
        }
    }

    /// Returns the scopes in which something is allowed, by name.
    pub fn scopes(&self, right: Right) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(move |name| self.allows(name, right))
    }
}

/// The door of a service that listens at an address.
#[derive(Debug)]
pub struct Door {
    address: SocketAddr,
    /// Whether nobody comes in without a token.
    locked: AtomicBool,
}

impl Door {
    /// Opens a door that is locked from the start where others than this machine can reach it, or where there are tokens already.
    pub fn new(address: SocketAddr, has_tokens: bool) -> Self {
        Self { address, locked: AtomicBool::new(has_tokens || !address.ip().is_loopback()) }
    }

    /// Lets a request through that calls the service by a name of its own, and comes from no page or from one that may. Returns the origin of
    /// a page of others.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_names(&self, parts: &Parts, http: &Http) -> Result<Option<HeaderValue>, Refusal> {
        let forbidden = || Refusal::new("forbidden");
        let host = only(&parts.headers, header::HOST).ok_or_else(forbidden)?;
        let authority: Authority = host.parse().map_err(|_| forbidden())?;
        // A request may name its target whole; both names must be ours.
        let names = [Some(&authority), parts.uri.authority()];
        if host.contains('@') || names.into_iter().flatten().any(|name| !self.is_own_name(name.host(), http)) {
            return Err(forbidden());
        }
        let Some(given) = parts.headers.get(header::ORIGIN) else { return Ok(None) };
        let origin = only(&parts.headers, header::ORIGIN).ok_or_else(forbidden)?;
        let is_own = origin.strip_prefix("http://").is_some_and(|rest| rest.eq_ignore_ascii_case(host));
        let is_listed = http.origins.iter().any(|known| known.eq_ignore_ascii_case(origin));
        if is_own || is_listed { Ok(is_listed.then(|| given.clone())) } else { Err(forbidden()) }
    }

    fn is_own_name(&self, host: &str, http: &Http) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let own = self.address.ip();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        // A page that was led here by a name of its own calls the service by that name, never by an address.
        let is_one_of_all = |ip: IpAddr| ip == own || own.is_unspecified() || (own.is_loopback() && ip.is_loopback());
        let is_address = bare.parse().is_ok_and(is_one_of_all);
        let is_loopback_name = own.is_loopback() && host.eq_ignore_ascii_case("localhost");
        is_address || is_loopback_name || http.hosts.iter().any(|name| name.eq_ignore_ascii_case(host))
    }

    /// Says what a request may do, by its bearer token.
    ///
    /// # Errors
    /// When it has none that is known, and one is needed.
    pub fn admit(&self, headers: &HeaderMap, config: Arc<Config>, names: Vec<String>) -> Result<Grant, Refusal> {
        if !config.http.tokens.is_empty() {
            self.locked.store(true, Ordering::Relaxed);
        } else if !self.locked.load(Ordering::Relaxed) {
            return Ok(Grant { config, names, token: None });
        }
        let given = only(headers, header::AUTHORIZATION).and_then(bearer).ok_or_else(|| Refusal::new("unauthorized"))?;
        let given = ContentHash::of(given.as_bytes());
        let mut found = None;
        for token in &config.http.tokens {
            // All are compared, so that the time tells nothing of which one it is.
            if bool::from(token.sha256.0.ct_eq(&given.0)) {
                found = Some(token.clone());
            }
        }
        match found {
            Some(token) => Ok(Grant { config, names, token: Some(token) }),
            None => Err(Refusal::new("unauthorized")),
        }
    }
}

/// Returns whether a browser asks whether a page may ask.
pub fn is_preflight(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS && parts.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Tells a browser that a page may ask, and read the answer.
pub fn allow_page(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
    let told = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "accept, authorization, content-type, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, x-request-id",
        ),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "mcp-session-id, retry-after, x-powercontext-request-id, x-request-id"),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    headers.extend(told.map(|(name, value)| (name, HeaderValue::from_static(value))));
}

/// Returns the value of a header that is there once.
fn only(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn parts(lines: &[(&str, &str)]) -> Parts {
        let request =
            lines.iter().fold(Request::builder().uri("/v1/scopes"), |request, (name, value)| request.header(*name, *value));
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn the_service_is_called_by_its_names() {
        let http =
            Http { hosts: vec!["code.example.org".into()], origins: vec!["https://app.example.org".into()], ..Http::default() };
        let check = |address: &str, lines: &[(&str, &str)], want: bool| {
            let door = Door::new(address.parse().expect("an address"), false);
            assert_eq!(door.check_names(&parts(lines), &http).is_ok(), want, "{address} {lines:?}");
        };
        let home = "127.0.0.1:7878";
        check(home, &[("host", "127.0.0.1:7878")], true);
        check(home, &[("host", "LocalHost:1")], true);
        check(home, &[("host", "localhost.")], true);
        check(home, &[("host", "[::1]:7878")], true);
        check(home, &[("host", "Code.example.org")], true);
        check(home, &[("host", "evil.example.org")], false);
        check(home, &[("host", "evil@localhost")], false);
        check(home, &[("host", "localhost@evil.example.org")], false);
        check(home, &[("host", "127.0.0.1.evil.example.org")], false);
        check(home, &[("host", "192.0.2.1")], false);
        check(home, &[("host", "")], false);
        check(home, &[("host", "localhost"), ("host", "localhost")], false);
        check(home, &[], false);
        check(home, &[("host", "localhost:7878"), ("origin", "http://localhost:7878")], true);
        check(home, &[("host", "localhost:7878"), ("origin", "https://app.example.org")], true);
        check(home, &[("host", "localhost:7878"), ("origin", "http://localhost:3000")], false);
        check(home, &[("host", "localhost:7878"), ("origin", "https://evil.example.org")], false);
        check(home, &[("host", "localhost:7878"), ("origin", "null")], false);
        check(home, &[("host", "localhost:7878"), ("origin", "")], false);
        check("192.0.2.1:80", &[("host", "192.0.2.1")], true);
        check("192.0.2.1:80", &[("host", "localhost")], false);
        check("0.0.0.0:80", &[("host", "192.0.2.7:80")], true);
        check("0.0.0.0:80", &[("host", "evil.example.org")], false);
    }

    #[test]
    fn a_token_opens_what_it_names() {
        let token =
            Token { name: None, sha256: ContentHash::of(b"open"), scopes: vec!["demo".into()], rights: vec![Right::ScopeRead] };
        let with = |tokens: &[Token]| {
            let environment = crate::config::Environment { home: Some("/nonexistent".into()), ..Default::default() };
            let mut config = Config::load(None, &environment).expect("defaults");
            config.http.tokens = tokens.to_vec();
            config
        };
        let door = Door::new("127.0.0.1:1".parse().expect("an address"), false);
        let admit = |line: Option<&str>, tokens: &[Token]| {
            let lines: Vec<(&str, &str)> = line.iter().map(|line| ("authorization", *line)).collect();
            door.admit(&parts(&lines).headers, Arc::new(with(tokens)), vec!["demo".into(), "other".into()]).ok()
        };
        let anyone = admit(None, &[]).expect("no tokens are known");
        assert!(anyone.allows("demo", Right::ScopeRead) && !anyone.allows("demo", Right::CodeManage));
        let tokens = [token];
        let known = admit(Some("bearer  open "), &tokens).expect("it is known");
        assert!(known.allows("demo", Right::ScopeRead));
        assert_eq!(known.scopes(Right::ScopeRead).collect::<Vec<_>>(), ["demo"]);
        assert!(!known.allows("other", Right::ScopeRead) && !known.allows("demo", Right::CodeManage));
        for line in [None, Some("Bearer"), Some("Bearer "), Some("Basic open"), Some("Bearer open2"), Some("open")] {
            assert!(admit(line, &tokens).is_none(), "{line:?}");
        }
        assert!(admit(None, &[]).is_none(), "the last token was taken back");
    }
}
