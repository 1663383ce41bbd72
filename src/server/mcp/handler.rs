//! What the protocol asks of a server: the revisions, the tools, and calls with progress and cancellation.
//!
//! Must not know a transport or how a tool works. Invariant: a call never holds up the loop that reads messages, and no more are worked on
//! at once than the room takes.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    DiscoverResult, ErrorCode, Implementation, ListToolsResult, MetaObject, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};
use tokio::time::MissedTickBehavior;

use crate::config::Limits;
use crate::server::http::Rooms;

use super::arguments::Arguments;
use super::http::Access;
use super::progress::{Account, Told};
use super::room::{Room, Turned, turned_away};
use super::tools::{TOOLS, declared};
use super::{INSTRUCTIONS, NO_ROOT, Outcome, ToolCall, Toolbox, Unanswered, schema};

/// How often a client that asked for it is told that its call goes on.
const PULSE: Duration = Duration::from_millis(500);
/// How long a client may take to be told.
const TELLING: Duration = Duration::from_millis(200);
/// How long a client may take to say where it works.
const ROOTS: Duration = Duration::from_secs(2);
/// How long a list of tools holds: as long as the program is not replaced by another.
const TOOLS_LAST: Duration = Duration::from_secs(3600);
/// Most characters of a text; none comes near to it whose budget is held.
const MOST_TEXT: usize = 25_000;

/// The revisions of the protocol, the newest first.
static REVISIONS: [ProtocolVersion; 3] =
    [ProtocolVersion::V_2026_07_28, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2025_06_18];

/// Serves one client or many.
#[derive(Clone)]
pub struct Handler {
    toolbox: Arc<dyn Toolbox>,
    room: Room,
    tools: Arc<[Tool]>,
}

impl Handler {
    /// Returns one for the client of this process.
    pub fn new(toolbox: Arc<dyn Toolbox>) -> Self {
        Self { toolbox, room: Room::own(), tools: schema::listed().into() }
    }

    /// Returns one for the clients of a service, whose calls stand beside its other requests.
    pub fn among(toolbox: Arc<dyn Toolbox>, rooms: Rooms) -> Self {
        Self { toolbox, room: Room::Shared(rooms), tools: schema::listed().into() }
    }

    /// Works on a call where there is room for it, and tells of its progress meanwhile. Whichever way this ends, the work ends with it.
    async fn work(
        &self,
        call: ToolCall,
        limits: Option<&Limits>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Outcome, ErrorData> {
        let onlooker = Arc::new(Room::onlooker(&call, limits));
        let _waits = onlooker.cancel().at_end();
        let (name, started, mut account) = (call.tool.name, Instant::now(), Account::default());
        let work = {
            let (toolbox, call, onlooker) = (Arc::clone(&self.toolbox), call.clone(), Arc::clone(&onlooker));
            move || toolbox.call(&call, &onlooker)
        };
        let mut work = std::pin::pin!(self.room.work(&call, limits, work));
        let token = context.meta.get_progress_token();
        let mut pulse = tokio::time::interval(PULSE);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                worked = &mut work => {
                    return match worked {
                        Ok(outcome) => Ok(outcome),
                        Err(Turned::Away(code)) => Ok(turned_away(code)),
                        Err(Turned::Broken) => Err(ErrorData::internal_error("the call ended without an answer", None)),
                    };
                }
                () = context.ct.cancelled() => {
                    return Err(ErrorData::internal_error("cancelled", None));
                }
                _ = pulse.tick(), if token.is_some() => {
                    let Some(token) = token.clone() else { continue };
                    let Told { done, total, message } = account.tell(name, started.elapsed(), onlooker.read());
                    let mut told = ProgressNotificationParam::new(token, done).with_message(message);
                    told.total = total;
                    // Who closed its input takes no more of these, and still waits for the answer.
                    let _ = tokio::time::timeout(TELLING, context.peer.notify_progress(told)).await;
                }
            }
        }
    }

    /// Returns the one directory of this machine that the client says it works in.
    #[expect(deprecated, reason = "clients of older revisions have roots, and are asked only where nothing else tells")]
    async fn root_of_client(&self, context: &RequestContext<RoleServer>) -> Option<PathBuf> {
        let is_older = context.protocol_version().is_some_and(|version| version < ProtocolVersion::V_2026_07_28);
        let has_roots = context.client_capabilities().is_some_and(|capabilities| capabilities.roots.is_some());
        if !is_older || !has_roots {
            return None;
        }
        let listed = tokio::time::timeout(ROOTS, context.peer.list_roots()).await.ok()?.ok()?;
        let mut directories = listed.roots.iter().filter_map(|root| directory_of(&root.uri));
        match (directories.next(), directories.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }
}

/// Returns the path of a `file:` URI.
fn directory_of(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://").and_then(|rest| rest.strip_prefix("localhost").or(Some(rest)))?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                digit()? << 4 | digit()?
            }
            byte => byte,
        });
    }
    let path = PathBuf::from(String::from_utf8(bytes).ok()?);
    path.is_absolute().then_some(path)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(implementation())
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&REVISIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut result = ListToolsResult::with_all_items(self.tools.to_vec());
        if is_current(&context) {
            let lasting = u64::try_from(TOOLS_LAST.as_millis()).unwrap_or(u64::MAX);
            result = result.with_ttl_ms(lasting).with_cache_scope(CacheScope::Public);
            result.meta = Some(said_of_server());
        }
        Ok(result)
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let lasting = u64::try_from(TOOLS_LAST.as_millis()).unwrap_or(u64::MAX);
        let found = DiscoverResult::from_server_info(REVISIONS.to_vec(), self.get_info());
        Ok(found.with_ttl_ms(lasting).with_cache_scope(CacheScope::Public))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(misfit(&request).unwrap_or_else(|| {
            let message = "there is no such method; there are: initialize, server/discover, ping, tools/list, tools/call";
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
        }))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = declared(&request.name) else {
            let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            return Err(ErrorData::invalid_params(format!("there is no such tool; there are: {}", known.join(", ")), None));
        };
        let given = request.arguments.unwrap_or_default();
        let outcome = match Arguments::read(tool, &given) {
            Ok(arguments) => self.answer(tool, given, &arguments, &context).await?,
            // The protocol wants them in the result, so that whoever wrote them reads what would fit.
            Err(error) => Outcome::without_answer(&Unanswered {
                code: "invalid_code_request",
                message: &error.to_string(),
                hint: "call again with arguments that fit the input schema of the tool",
                failed: true,
            }),
        };
        Ok(result_of(outcome, is_current(&context)).into())
    }
}

impl Handler {
    async fn answer(
        &self,
        tool: &'static super::Declaration,
        given: Map<String, Value>,
        arguments: &Arguments,
        context: &RequestContext<RoleServer>,
    ) -> Result<Outcome, ErrorData> {
        let access = Access::of(&context.extensions);
        let (scope, may_sync) = match &access {
            None => (None, true),
            Some(access) => match access.scope(tool, arguments) {
                Ok(scope) => {
                    let may_sync = access.may_sync(&scope);
                    (Some(scope), may_sync)
                }
                Err(refused) => return Ok(Outcome::without_answer(&refused)),
            },
        };
        let limits = access.as_ref().map(|access| &access.limits);
        let mut call = ToolCall { tool, arguments: given, client_root: None, scope, may_sync };
        let outcome = self.work(call.clone(), limits, context).await?;
        if call.scope.is_some() || !call.names_no_place() || outcome.code() != Some(NO_ROOT) {
            return Ok(outcome);
        }
        call.client_root = self.root_of_client(context).await;
        if call.client_root.is_some() { self.work(call, limits, context).await } else { Ok(outcome) }
    }
}

/// Returns what is wrong with a request of a known method whose parameters are not its own.
pub(super) fn misfit(request: &CustomRequest) -> Option<ErrorData> {
    let known = ["initialize", "server/discover", "ping", "tools/list", "tools/call"];
    let method = known.into_iter().find(|method| *method == request.method)?;
    Some(ErrorData::invalid_params(format!("the parameters of `{method}` do not have its form"), None))
}

/// Returns whether a request is of the revision without sessions.
fn is_current(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

fn implementation() -> Implementation {
    Implementation::new("sextant", env!("CARGO_PKG_VERSION")).with_title("Sextant")
}

/// Returns what results of the current revision carry about the server.
fn said_of_server() -> MetaObject {
    let mut meta = MetaObject::default();
    if let Ok(server) = serde_json::to_value(implementation()) {
        meta.insert("io.modelcontextprotocol/serverInfo".to_owned(), server);
    }
    meta
}

fn result_of(outcome: Outcome, is_current: bool) -> CallToolResult {
    let Outcome { mut text, structured, failed } = outcome;
    if text.len() > MOST_TEXT {
        let end = text[..text.floor_char_boundary(MOST_TEXT)].rfind('\n').map_or(0, |at| at + 1);
        text.truncate(end);
        text.push_str("the rest is left out: ask for less with `limit`, `path` or `max_bytes`\n");
    }
    let content = vec![ContentBlock::text(text)];
    let mut result = if failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(Value::Object(structured));
    if is_current {
        result.meta = Some(said_of_server());
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_roots() {
        let check = |uri: &str, want: Option<&str>| assert_eq!(directory_of(uri), want.map(PathBuf::from), "{uri}");
        check("file:///home/u/a%20b", Some("/home/u/a b"));
        check("file://localhost/w", Some("/w"));
        check("file:///w/%C3%B6", Some("/w/\u{f6}"));
        check("file:///w/%zz", None);
        check("file:///w/%4", None);
        check("file://other/w", None);
        check("https://example.com/w", None);
    }

    #[test]
    fn texts_stay_below_what_hosts_take() {
        let outcome = |text: String| Outcome { text, structured: Map::new(), failed: false };
        let long = result_of(outcome("\u{f6}\u{f6}\u{f6}\n".repeat(9_000)), false);
        let text = serde_json::to_value(&long).expect("JSON")["content"][0]["text"].as_str().expect("text").to_owned();
        assert!(
            text.len() < MOST_TEXT + 100 && text.ends_with("`max_bytes`\n") && text.contains("\u{f6}\nthe rest"),
            "{}",
            text.len()
        );
        let short = serde_json::to_value(result_of(outcome("x\n".to_owned()), false)).expect("JSON");
        assert_eq!(short["content"][0]["text"], "x\n");
    }
}
