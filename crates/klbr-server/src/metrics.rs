//! What the daemon counts, in Prometheus' text format. Counters begin with the process.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use klbr_core::ledger::{Fate, Ledger};
use klbr_core::runtime::Updates;
use klbr_core::update::{Happening, Update};

/// Upper bounds of the admission histogram's buckets, in microseconds.
const BUCKETS: [u64; 10] = [500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_500_000];

/// The counters of one agent.
#[derive(Default)]
pub(crate) struct Metrics {
    turns: AtomicU64,
    replies: AtomicU64,
    failures: AtomicU64,
    deliveries: AtomicU64,
    tokens_in: AtomicU64,
    tokens_out: AtomicU64,
    tokens_cached: AtomicU64,
    buckets: [AtomicU64; BUCKETS.len()],
    admissions: AtomicU64,
    admission_micros: AtomicU64,
}

impl Metrics {
    /// Counts what happens until the agent stops.
    pub(crate) async fn observe(&self, mut updates: Updates) {
        loop {
            match updates.next().await {
                Ok(Some(update)) => self.count(&update),
                Ok(None) => return,
                // The store may come back; the agent itself waits as long between its tries.
                Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
            }
        }
    }

    fn count(&self, update: &Update) {
        match &update.happening {
            Happening::TurnStarted { .. } => add(&self.turns, 1),
            Happening::Replied { usage, .. } => {
                add(&self.replies, 1);
                if let Some(usage) = usage {
                    add(&self.tokens_in, usage.input);
                    add(&self.tokens_out, usage.output);
                    add(&self.tokens_cached, usage.cached.unwrap_or(0));
                }
            }
            Happening::SamplingFailed { .. } => add(&self.failures, 1),
            Happening::Delivered { .. } => add(&self.deliveries, 1),
            _ => {}
        }
    }

    /// An event was made durable in this time, as its client saw it.
    pub(crate) fn admitted(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        for (bound, bucket) in BUCKETS.iter().zip(&self.buckets) {
            if micros <= *bound {
                add(bucket, 1);
            }
        }
        add(&self.admissions, 1);
        add(&self.admission_micros, micros);
    }

    /// Everything counted, with the ledger's terms when they are known.
    pub(crate) fn render(&self, agent: &str, ledger: Option<Ledger>) -> String {
        let mut page = Page { text: String::new(), agent };
        if let Some(mut ledger) = ledger {
            page.counter("klbr_events_admitted_total", "Events ever admitted.", ledger.admitted);
            page.head("klbr_events", "Where the admitted events are.", "gauge");
            for fate in Fate::ALL {
                let term = *ledger.term(fate);
                page.line("klbr_events", &format!(",fate=\"{}\"", fate.as_str()), &term);
            }
        }
        for (name, help, counter) in [
            ("klbr_turns_total", "Turns begun.", &self.turns),
            ("klbr_replies_total", "Replies of the model.", &self.replies),
            ("klbr_sampling_failures_total", "Failed samplings.", &self.failures),
            ("klbr_deliveries_total", "Confirmed deliveries.", &self.deliveries),
            ("klbr_input_tokens_total", "Tokens of requests, as the provider counts.", &self.tokens_in),
            ("klbr_output_tokens_total", "Tokens of replies.", &self.tokens_out),
            ("klbr_cached_tokens_total", "Tokens of requests that were cached.", &self.tokens_cached),
        ] {
            page.counter(name, help, get(counter));
        }
        let name = "klbr_admission_seconds";
        page.head(name, "From an event's arrival at the API to its durable commit.", "histogram");
        for (bound, bucket) in BUCKETS.iter().zip(&self.buckets) {
            page.line(&format!("{name}_bucket"), &format!(",le=\"{}\"", seconds(*bound)), &get(bucket));
        }
        let admissions = get(&self.admissions);
        page.line(&format!("{name}_bucket"), ",le=\"+Inf\"", &admissions);
        page.line(&format!("{name}_sum"), "", &seconds(get(&self.admission_micros)));
        page.line(&format!("{name}_count"), "", &admissions);
        page.text
    }
}

struct Page<'a> {
    text: String,
    agent: &'a str,
}

// Writing to a String never fails; agents' names need no escaping.
impl Page<'_> {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: &dyn std::fmt::Display) {
        let _ = writeln!(self.text, "{name}{{agent=\"{}\"{labels}}} {value}", self.agent);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        self.line(name, "", &value);
    }
}

fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
