//! The routes: each takes a request apart, asks the desk, and gives what came of it.
//!
//! Must not know sockets. Invariant: every answer passed the door and carries a request id; a scope is looked for only by who may read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http_body_util::BodyExt;
use serde::Serialize;

use crate::config::{Config, Http, Right};
use crate::engine::Guest;
use crate::model::Cancel;
use crate::query::request::{self, MAX_BODY};
use crate::render::json;
use crate::server::answer;

use super::door::{self, Door, Grant};
use super::metrics::Metrics;
use super::openapi;
use super::refusal::{Code, Refusal, json as json_response};
use super::scopes::Scopes;
use super::work::Rooms;

/// A body that is too large is read to its end up to here, so that its sender hears why it is refused.
const MOST_UNREAD: usize = 1 << 20;
/// How long the body of a request is read that is refused already.
const UNHEARD: Duration = Duration::from_secs(1);
/// So many questions are worked on at once: they wait for the same looks at the worktree, and little else.
const QUESTIONS: usize = 64;
/// So many more may wait.
const WAITING: usize = 192;
/// Syncs at once, of all scopes, and those that wait; each holds a thread for long.
const SYNCS: usize = 8;
const WAITING_SYNCS: usize = 32;
/// Threads that may block: one for each piece of work, and some for what is quick.
pub const THREADS: usize = QUESTIONS + SYNCS + 8;

const CONTRACT_ID: HeaderName = HeaderName::from_static("x-powercontext-request-id");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What all requests have in common.
#[derive(Debug)]
pub struct Surface {
    pub scopes: Scopes,
    pub door: Door,
    pub metrics: Metrics,
    rooms: Rooms,
    /// Requests since the last pause.
    lately: AtomicU64,
}

impl Surface {
    pub fn new(scopes: Scopes, door: Door) -> Self {
        let rooms = Rooms::new((QUESTIONS, WAITING), (SYNCS, WAITING_SYNCS));
        Self { scopes, door, metrics: Metrics::default(), rooms, lately: AtomicU64::new(0) }
    }

    /// Returns where its requests are worked on.
    pub fn rooms(&self) -> &Rooms {
        &self.rooms
    }

    /// Returns whether nothing is asked any more, once after something was.
    pub fn takes_pause(&self) -> bool {
        self.rooms.present() == 0 && self.lately.swap(0, Ordering::Relaxed) > 0
    }
}

type Shared = State<Arc<Surface>>;

/// Returns the service. What is `mounted` beside its routes stands behind the same door, and finds the [`Grant`] of a request in its
/// extensions; its bodies are bounded, too.
pub fn router(surface: Arc<Surface>, mounted: Router) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(document))
        .route("/v1/scopes", get(scopes))
        .route("/v1/scopes/{scope_id}/code/status", get(status))
        .route("/v1/scopes/{scope_id}/code/query", post(query))
        .route("/v1/scopes/{scope_id}/code/sync", post(sync))
        .method_not_allowed_fallback(async || Refusal::new("method_not_allowed"))
        .fallback(async || Refusal::new("not_found"))
        .with_state(Arc::clone(&surface))
        .merge(mounted)
        .layer(middleware::from_fn_with_state(surface, oversee))
}

/// Returns the word for a route in figures.
fn route_of(path: &str) -> &'static str {
    match path {
        "/healthz" => "healthz",
        "/metrics" => "metrics",
        "/openapi.json" => "openapi",
        "/v1/scopes" => "scopes",
        _ if path == "/mcp" || path.starts_with("/mcp/") => "mcp",
        _ if path.starts_with("/v1/scopes/") && path.ends_with("/code/query") => "query",
        _ if path.starts_with("/v1/scopes/") && path.ends_with("/code/status") => "status",
        _ if path.starts_with("/v1/scopes/") && path.ends_with("/code/sync") => "sync",
        _ => "other",
    }
}

/// Stands around every request: the door before it, its body read, its id and the count after it.
async fn oversee(State(surface): Shared, request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    surface.lately.fetch_add(1, Ordering::Relaxed);
    let route = route_of(request.uri().path());
    let mut page = None;
    let mut response = receive(&surface, route, request, next, &mut page).await.unwrap_or_else(IntoResponse::into_response);
    let code = response.extensions().get::<Code>().map_or("", |Code(code)| code);
    surface.metrics.count(route, response.status().as_u16(), code);
    let headers = response.headers_mut();
    headers.insert(CONTRACT_ID, id.clone());
    headers.insert(REQUEST_ID, id);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(page) = page {
        door::allow_page(headers, page);
    }
    response
}

/// Returns the id that the client gave, if it is one, or a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let given = headers.get(&REQUEST_ID).filter(|id| (1..=64).contains(&id.len()) && id.as_bytes().iter().all(is_plain));
    if let Some(given) = given {
        return given.clone();
    }
    let number = getrandom::u64().unwrap_or_default();
    HeaderValue::from_str(&format!("{number:016x}")).expect("hexadecimal digits are visible")
}

/// Whoever called the service by its name, from no page or from one that may.
struct Visitor {
    /// `None` where it cannot be read, on routes that need none.
    config: Option<Arc<Config>>,
    /// The origin of the page.
    page: Option<HeaderValue>,
}

/// Reads the configuration as it is now, and checks the names in a request.
async fn knock(surface: &Arc<Surface>, route: &str, parts: &Parts) -> Result<Visitor, Refusal> {
    let shared = Arc::clone(surface);
    let read = tokio::task::spawn_blocking(move || shared.scopes.config()).await.map_err(|_| Refusal::new("internal_error"))?;
    let config = read.inspect_err(|error| tracing::error!(%error, "the configuration cannot be read")).ok();
    // That it lives can be said without one.
    let page = match &config {
        Some(config) => surface.door.check_names(parts, &config.http)?,
        None if is_open(route) => surface.door.check_names(parts, &Http::default())?,
        None => return Err(Refusal::new("code_repository_unconfigured")),
    };
    Ok(Visitor { config, page })
}

/// Whether it lives, and how it is asked, is no secret.
fn is_open(route: &str) -> bool {
    matches!(route, "healthz" | "openapi")
}

/// Lets a request in, has it answered, and says which page may read that.
async fn receive(
    surface: &Arc<Surface>,
    route: &str,
    request: Request,
    next: Next,
    page: &mut Option<HeaderValue>,
) -> Result<Response, Refusal> {
    let (mut parts, body) = request.into_parts();
    let mut patience = Http::default().patience();
    let mut admit = async || {
        let visitor = knock(surface, route, &parts).await?;
        *page = visitor.page;
        if page.is_some() && door::is_preflight(&parts) {
            return Ok(Some(StatusCode::NO_CONTENT.into_response()));
        }
        let Some(config) = visitor.config else { return Ok(None) };
        patience = config.http.patience();
        if !is_open(route) {
            let names = surface.scopes.names(&config);
            let grant = surface.door.admit(&parts.headers, config, names)?;
            parts.extensions.insert(grant);
        }
        Ok(None)
    };
    match admit().await {
        Ok(None) => {}
        Ok(Some(response)) => return Ok(response),
        Err(refusal) => {
            // Whoever is still speaking would not hear why.
            let _ = read(&parts.headers, body, patience.min(UNHEARD)).await;
            return Err(refusal);
        }
    }
    let body = read(&parts.headers, body, patience).await?;
    Ok(next.run(Request::from_parts(parts, Body::from(body))).await)
}

/// Reads a body, which may not be too large or too slow.
async fn read(headers: &HeaderMap, mut body: Body, patience: Duration) -> Result<Bytes, Refusal> {
    let said = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if said.is_some_and(|said| said > MOST_UNREAD) {
        return Err(Refusal::new("request_too_large"));
    }
    let all = async {
        let (mut kept, mut length) = (Vec::new(), 0);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Refusal::new("malformed_request"))?.into_data() else { continue };
            length += data.len();
            if length > MOST_UNREAD {
                break;
            }
            if length <= MAX_BODY {
                kept.extend_from_slice(&data);
            }
        }
        if length > MAX_BODY { Err(Refusal::new("request_too_large")) } else { Ok(Bytes::from(kept)) }
    };
    tokio::time::timeout(patience, all).await.unwrap_or_else(|_| Err(Refusal::new("request_timeout")))
}

async fn healthz() -> Response {
    json_response(StatusCode::OK, r#"{"status":"ok"}"#.to_owned())
}

async fn metrics(State(surface): Shared) -> Response {
    let text = surface.metrics.text(surface.rooms.present());
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn document() -> Response {
    json_response(StatusCode::OK, openapi::document().to_owned())
}

/// A scope as a list of the contract's service names it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ScopeDescriptor {
    scope_id: String,
    title: String,
    summary: &'static str,
    parent_scope_id: Option<String>,
    context_references: Vec<String>,
    external_references: Vec<String>,
    version: u32,
}

/// The scopes that whoever asks may read.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ScopePage {
    items: Vec<ScopeDescriptor>,
    next_cursor: Option<String>,
}

async fn scopes(Extension(grant): Extension<Grant>) -> Response {
    let describe = |name: &str| ScopeDescriptor {
        scope_id: name.to_owned(),
        title: name.to_owned(),
        summary: "The code of one worktree",
        parent_scope_id: None,
        context_references: Vec::new(),
        external_references: Vec::new(),
        version: 1,
    };
    let page = ScopePage { items: grant.scopes(Right::ScopeRead).map(describe).collect(), next_cursor: None };
    json_response(StatusCode::OK, serde_json::to_string(&page).expect("plain values have JSON"))
}

type Named = Result<Path<String>, PathRejection>;

/// Returns the name of the scope that a path is about, if whoever asks has a right there.
fn permitted(name: Named, grant: &Grant, right: Right) -> Result<String, Refusal> {
    let Path(name) = name.map_err(|_| Refusal::new("not_found"))?;
    if grant.allows(&name, right) { Ok(name) } else { Err(Refusal::new("forbidden")) }
}

async fn status(State(surface): Shared, Extension(grant): Extension<Grant>, name: Named) -> Result<Response, Refusal> {
    let name = permitted(name, &grant, Right::ScopeRead)?;
    let arrived = Instant::now();
    let (scopes, limit) = (Arc::clone(&surface), grant.config.limits.query());
    let work = move || Ok(json::status(&scopes.scopes.desk(&grant.config, &name)?.desk.status()));
    let body = answered(surface.rooms.questions.run(arrived + limit, work).await?)?;
    surface.metrics.time("status", arrived.elapsed());
    Ok(json_response(StatusCode::OK, body))
}

async fn query(
    State(surface): Shared,
    Extension(grant): Extension<Grant>,
    name: Named,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let name = permitted(name, &grant, Right::ScopeRead)?;
    require_json(&headers)?;
    let request = request::parse(&body).map_err(|error| Refusal::of_request(&error))?;
    let (arrived, limit) = (Instant::now(), grant.config.limits.query());
    let (scopes, operation) = (Arc::clone(&surface), request.operation.kind());
    let cancel = Cancel::default();
    // Whoever does not wait for the answer lets go of this.
    let _waits = cancel.at_end();
    let work = move || {
        let served = scopes.scopes.desk(&grant.config, &name)?;
        let policy = answer::strict_policy(&served.desk, served.is_implicit);
        // The time that it waited is a part of what it has.
        let left = (arrived + limit).saturating_duration_since(Instant::now());
        answer::answer(&Guest::new(served.desk, cancel), &request, policy, left)
    };
    let body = answered(surface.rooms.questions.run(arrived + limit, work).await?)?;
    surface.metrics.time(operation, arrived.elapsed());
    Ok(json_response(StatusCode::OK, body))
}

async fn sync(
    State(surface): Shared,
    Extension(grant): Extension<Grant>,
    name: Named,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let name = permitted(name, &grant, Right::CodeManage)?;
    if !body.trim_ascii().is_empty() {
        require_json(&headers)?;
        let empty =
            serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&body).is_ok_and(|fields| fields.is_empty());
        if !empty {
            return Err(Refusal::of_body("must be empty or an empty object"));
        }
    }
    let (arrived, scopes) = (Instant::now(), Arc::clone(&surface));
    let limit = grant.config.limits.build();
    let cancel = Cancel::default();
    let _waits = cancel.at_end();
    let work = move || {
        let desk = Guest::new(scopes.scopes.desk(&grant.config, &name)?.desk, cancel);
        let left = (arrived + limit).saturating_duration_since(Instant::now());
        desk.sync_within(left).map(|outcome| json::build(&outcome)).map_err(|error| answer::Refusal::new(error.code(), &error))
    };
    Ok(json_response(StatusCode::OK, answered(surface.rooms.syncs.run(arrived + limit, work).await?)?))
}

/// Tells the log what the client is not told: the message of a refusal may name paths.
fn answered(outcome: Result<String, answer::Refusal>) -> Result<String, Refusal> {
    outcome.map_err(|refusal| {
        tracing::debug!(code = refusal.code, message = refusal.message, "refused");
        Refusal::new(refusal.code)
    })
}

/// A page of a browser cannot say that it sends JSON without being asked whether it may.
fn require_json(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(Refusal::of_body("must be sent as it is, without an encoding"));
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(Refusal::of_body("must be application/json")) }
}
