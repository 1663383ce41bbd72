//! What is counted and timed, in the text form of Prometheus.
//!
//! Must not know scopes or paths. Invariant: every label is a word of this program, so that nothing of a request or a worktree is in any.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::parse::{Memory, memory_in_use};

/// Upper bounds of the buckets, in seconds.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Requested {
    route: &'static str,
    status: u16,
    /// The code of a refusal, empty where there is none.
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

/// The figures of a service.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Requested, Counter>,
    seconds: Family<Asked, Histogram>,
    /// Open connections.
    pub connections: Gauge<u64, AtomicU64>,
    /// Connections that were turned away.
    pub refused: Counter,
    running: Gauge<u64, AtomicU64>,
    memory: Gauge<u64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        let (requests, seconds) = (Family::default(), Family::new_with_constructor(histogram));
        let (connections, refused) = (Gauge::<u64, AtomicU64>::default(), Counter::default());
        let (running, memory) = (Gauge::<u64, AtomicU64>::default(), Gauge::<u64, AtomicU64>::default());
        let mut registry = Registry::with_prefix("sextant");
        let build = Family::<Build, Gauge>::default();
        build.get_or_create(&Build { version: env!("CARGO_PKG_VERSION") }).set(1);
        registry.register("build", "The version of the program", build);
        registry.register("http_requests", "Requests that were answered or refused", Family::clone(&requests));
        registry.register_with_unit(
            "http_question",
            "Time of questions, checks included",
            Unit::Seconds,
            Family::clone(&seconds),
        );
        registry.register("http_connections", "Open connections", connections.clone());
        registry.register("http_connections_refused", "Connections that were turned away", refused.clone());
        registry.register("http_work", "Questions and syncs that wait or run", running.clone());
        registry.register_with_unit("resident_memory", "Memory of the service", Unit::Bytes, memory.clone());
        Self { registry, requests, seconds, connections, refused, running, memory }
    }
}

impl Metrics {
    /// Counts a request.
    pub fn count(&self, route: &'static str, status: u16, code: &'static str) {
        self.requests.get_or_create(&Requested { route, status, code }).inc();
    }

    /// Notes how long a question took.
    pub fn time(&self, operation: &'static str, taken: Duration) {
        self.seconds.get_or_create(&Asked { operation }).observe(taken.as_secs_f64());
    }

    /// Returns the text of all figures, while so much waits or runs.
    pub fn text(&self, present: u64) -> String {
        self.running.set(present);
        self.memory.set(memory_in_use(Memory::Resident).unwrap_or(0));
        let mut out = String::new();
        text::encode(&mut out, &self.registry).expect("writing to a string");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_as_they_are_read() {
        let metrics = Metrics::default();
        metrics.count("query", 409, "code_changed");
        metrics.time("callers", Duration::from_millis(3));
        let text = metrics.text(2);
        for line in [
            r#"sextant_http_requests_total{route="query",status="409",code="code_changed"} 1"#,
            r#"sextant_http_question_seconds_bucket{le="0.005",operation="callers"} 1"#,
            r#"sextant_http_question_seconds_count{operation="callers"} 1"#,
            "sextant_http_work 2",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
