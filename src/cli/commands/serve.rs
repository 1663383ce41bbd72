//! `serve`: answers over HTTP, in the foreground.
//!
//! Must not know what is answered. Invariant: one line on standard output says where it listens, once it does.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::cli::arguments::Global;
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Stop, World, start_tracing};
use crate::model::sentence;
use crate::server::http::{HttpError, Options, Server};
use crate::server::mcp;

use super::mcp::Served;

pub fn run(global: &Global, address: &str, world: &mut World<'_>) -> Result<Exit, Stop> {
    if global.scope.is_some() {
        return Err(Failure::usage("`serve` serves every scope of the configuration; tokens say who may ask which").into());
    }
    if global.verbose == 0 {
        start_tracing("sextant=info", io::stderr);
    }
    let options = Options {
        address: parse(address)?,
        environment: world.environment.clone(),
        config: global.config.clone(),
        root: global.root.clone(),
    };
    let server = Server::bind(options).map_err(|error| of_http(&error))?;
    let tools = Served::new(world.environment.clone(), global.config.clone(), &server);
    let rooms = server.rooms();
    let server = server.mounting(mcp::routes(Arc::new(tools), rooms));
    let address = server.address();
    if global.json {
        writeln!(world.out, r#"{{"event":"listening","address":"{address}"}}"#)?;
    } else {
        writeln!(world.out, "listening on http://{address}")?;
    }
    world.out.flush()?;
    server.run().map_err(|error| of_http(&error))?;
    Ok(Exit::Answered)
}

/// Reads `address:port`; the one name that needs no look-up is known.
fn parse(address: &str) -> Result<SocketAddr, Failure> {
    let known = address.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    known
        .as_deref()
        .unwrap_or(address)
        .parse()
        .map_err(|_| Failure::usage(format!("`{address}` is no address to listen on; write it as 127.0.0.1:7878 or [::1]:7878")))
}

fn of_http(error: &HttpError) -> Failure {
    match error {
        HttpError::Config(error) => Failure::of_config(error),
        HttpError::Open(_) | HttpError::Listen { .. } => Failure::usage(sentence(error)),
        HttpError::System(_) => Failure::new("code_build_failed", sentence(error)),
    }
}
