//! The protocol over HTTP, as a service to be mounted at one path behind whatever checks who asks.
//!
//! Must not know sockets, tokens or hosts. Invariant: a request that comes without a grant reaches no scope, and none reaches a directory
//! that is no scope.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rmcp::model::{ErrorData, Extensions, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::config::{Limits, Right};
use crate::server::http::{Grant, Rooms};

use super::arguments::Arguments;
use super::handler::Handler;
use super::lines::{Read, understand};
use super::tools::Declaration;
use super::{Toolbox, Unanswered};

/// Most bytes of a request.
const MAX_BODY: usize = 64 << 10;

/// A tower service over HTTP requests with any body.
type HttpService = StreamableHttpService<Handler, NeverSessionManager>;

/// What a client may ask, by what the service found out of who it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Access {
    /// Scopes that it may read.
    pub read: BTreeSet<String>,
    /// Scopes that it may sync.
    pub manage: BTreeSet<String>,
    /// How long its calls may take.
    pub limits: Limits,
}

/// Returns the protocol at `/mcp`, to be mounted in the service in whose rooms its calls are worked on.
pub fn routes(toolbox: Arc<dyn Toolbox>, rooms: Rooms) -> Router {
    Router::new().route_service("/mcp", service(toolbox, rooms)).layer(middleware::from_fn(understood))
}

/// Refuses a body that is no message, in the words that lines of standard streams are refused with.
async fn understood(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    // The service read it before, within its own bounds.
    let Ok(body) = to_bytes(body, MAX_BODY).await else { return StatusCode::PAYLOAD_TOO_LARGE.into_response() };
    let (id, error) = match understand(&body) {
        Read::Refused(id, error) => (id, error),
        Read::Ignored if body.trim_ascii().is_empty() => (None, ErrorData::parse_error("a message is one JSON object", None)),
        Read::Message(_) | Read::Ignored => return next.run(Request::from_parts(parts, Body::from(body))).await,
    };
    let message = serde_json::to_string(&ServerJsonRpcMessage::error(error, id)).unwrap_or_default();
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], message).into_response()
}

/// Returns the protocol alone. It keeps no sessions, answers in plain JSON where a call tells no progress, and leaves Host, Origin and
/// authorisation to the service before it, which puts a [`Grant`] into the request's extensions.
fn service(toolbox: Arc<dyn Toolbox>, rooms: Rooms) -> HttpService {
    let handler = Handler::among(toolbox, rooms);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BODY)
        .disable_allowed_hosts();
    StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(NeverSessionManager::default()), config)
}

impl Access {
    /// Returns what a request may ask, where it came over HTTP: nothing, where nobody said.
    pub fn of(extensions: &Extensions) -> Option<Self> {
        let parts = extensions.get::<http::request::Parts>()?;
        let grant = parts.extensions.get::<Grant>();
        Some(grant.map(Self::by).unwrap_or_default())
    }

    fn by(grant: &Grant) -> Self {
        let scopes = |right| grant.scopes(right).map(str::to_owned).collect();
        Self { read: scopes(Right::ScopeRead), manage: scopes(Right::CodeManage), limits: grant.config.limits.clone() }
    }

    /// Returns whether a scope may be synced.
    pub fn may_sync(&self, scope: &str) -> bool {
        self.manage.contains(scope)
    }

    /// Returns the scope that a call is for: the named one, or the only one.
    pub fn scope(&self, tool: &Declaration, arguments: &Arguments) -> Result<String, Unanswered<'static>> {
        let refusal = |code, message, hint| Unanswered { code, message, hint, failed: true };
        if arguments.text("root").is_some() {
            let hint = "pass `scope`, the name of a configured scope";
            return Err(refusal("forbidden", "directories cannot be chosen over HTTP", hint));
        }
        let allowed = if tool.is_read_only { &self.read } else { &self.manage };
        let named = match arguments.text("scope") {
            Some(name) => Some(name),
            None if self.read.len() == 1 => self.read.first().map(String::as_str),
            None => None,
        };
        match named {
            Some(name) if allowed.contains(name) => Ok(name.to_owned()),
            Some(_) => {
                let message = "this scope does not exist, or the token has no right to do this in it";
                Err(refusal("forbidden", message, "pass a scope and use a token that belong together"))
            }
            None if self.read.is_empty() => {
                Err(refusal("forbidden", "no scope may be read", "use a token with the right scope.read"))
            }
            None => {
                let message = "there are several scopes";
                let hint = "pass `scope`, one of those that GET /v1/scopes lists";
                Err(Unanswered { failed: false, ..refusal("code_repository_unconfigured", message, hint) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;
    use crate::server::mcp::tools::declared;

    #[test]
    fn scopes_that_may_be_asked() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let check = |read: &[&str], manage: &[&str], tool: &str, given: &str, want: Result<&str, &str>| {
            let tool = declared(tool).expect("a tool");
            let given: Map<String, Value> = serde_json::from_str(given).expect("an object");
            let arguments = Arguments::read(tool, &given).expect("they fit");
            let found = Access { read: set(read), manage: set(manage), ..Access::default() }.scope(tool, &arguments);
            assert_eq!(found.as_deref().map_err(|error| error.code), want, "{given:?}");
        };
        check(&["a"], &[], "status", "{}", Ok("a"));
        check(&["a", "b"], &[], "status", r#"{"scope":"b"}"#, Ok("b"));
        check(&["a", "b"], &[], "status", "{}", Err("code_repository_unconfigured"));
        check(&["a"], &[], "status", r#"{"scope":"b"}"#, Err("forbidden"));
        check(&["a"], &[], "status", r#"{"root":"/"}"#, Err("forbidden"));
        check(&["a"], &[], "sync", "{}", Err("forbidden"));
        check(&["a"], &["a"], "sync", "{}", Ok("a"));
        check(&[], &[], "status", "{}", Err("forbidden"));
    }
}
