//! Every route, once: what serves it, and what the API's description says of it.
//!
//! The router and the description are made from this one list, so that neither can know a route that the
//! other does not; that is why no framework derives the description from handlers here.

use std::sync::Arc;

use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use klbr_core::ledger::Ledger;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{Shared, control, memory, openapi, policy, read, stream, system, workbench, ws};
use crate::api::{self, path};

/// The paths that need no token.
pub(super) const OPEN: &[&str] = &[path::HEALTH];

type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// One method of one path.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) query: Option<MakeSchema>,
    pub(super) body: Option<MakeSchema>,
    pub(super) answer: Answer,
    /// Whether it admits an event, and takes an `Idempotency-Key`.
    pub(super) admits: bool,
    pub(super) handler: MethodRouter<Arc<Shared>>,
}

/// What a success is answered with.
pub(super) enum Answer {
    Json(MakeSchema),
    /// A text of this type.
    Text(&'static str),
    /// A stream of server-sent events; each one's data is this.
    Events(MakeSchema),
    /// A WebSocket.
    Upgrade,
}

impl Route {
    fn new<T: 'static>(
        method: MethodFilter,
        path: &'static str,
        summary: &'static str,
        answer: Answer,
        handler: impl Handler<T, Arc<Shared>>,
    ) -> Self {
        let name = match method {
            MethodFilter::POST => Method::POST,
            MethodFilter::PUT => Method::PUT,
            _ => Method::GET,
        };
        let handler = on(method, handler);
        Route { method: name, path, summary, query: None, body: None, answer, admits: false, handler }
    }

    fn query<Q: JsonSchema>(mut self) -> Self {
        self.query = Some(Q::json_schema);
        self
    }

    fn body<B: JsonSchema>(mut self) -> Self {
        self.body = Some(SchemaGenerator::subschema_for::<B>);
        self
    }

    fn admits(mut self) -> Self {
        self.admits = true;
        self
    }
}

fn json<A: JsonSchema>() -> Answer {
    Answer::Json(SchemaGenerator::subschema_for::<A>)
}

/// The list.
pub(super) fn routes() -> Vec<Route> {
    let (get, post, put) = (MethodFilter::GET, MethodFilter::POST, MethodFilter::PUT);
    vec![
        Route::new(
            get,
            path::HEALTH,
            "Whether the daemon answers",
            Answer::Text("text/plain"),
            system::health,
        ),
        Route::new(get, path::OPENAPI, "This description", json::<serde_json::Value>(), openapi::serve),
        Route::new(
            get,
            path::METRICS,
            "Metrics in Prometheus' format",
            Answer::Text("text/plain"),
            system::metrics,
        ),
        Route::new(get, path::AGENTS, "The agents", json::<api::Agents>(), system::agents),
        Route::new(get, path::MODELS, "What the model server offers", json::<api::Models>(), system::models),
        Route::new(post, path::SHUTDOWN, "Stops the daemon in order", json::<api::Done>(), system::shutdown),
        Route::new(
            post,
            path::MESSAGES,
            "Says something to the agent",
            json::<api::Accepted>(),
            control::message,
        )
        .body::<api::Message>()
        .admits(),
        Route::new(
            get,
            path::EVENTS,
            "Updates as server-sent events; each id is a record's, and live pieces have none",
            Answer::Events(SchemaGenerator::subschema_for::<klbr_core::update::Update>),
            stream::events,
        )
        .query::<api::StreamQuery>(),
        Route::new(
            post,
            path::EVENTS,
            "Admits an external event",
            json::<api::Accepted>(),
            control::external,
        )
        .body::<api::ExternalEvent>()
        .admits(),
        Route::new(
            get,
            path::WS,
            "Updates over a WebSocket, which takes messages too",
            Answer::Upgrade,
            ws::upgrade,
        )
        .query::<api::StreamQuery>(),
        Route::new(get, path::STATUS, "How the agent is doing", json::<api::AgentStatus>(), read::status),
        Route::new(get, path::LEDGER, "Where every event is", json::<Ledger>(), read::ledger),
        Route::new(get, path::INBOX, "What waits to be shown or decided", json::<api::Inbox>(), read::inbox)
            .query::<api::InboxQuery>(),
        Route::new(get, path::ITEM, "One attention item", json::<api::ItemBody>(), read::item),
        Route::new(
            post,
            path::MARK,
            "Decides about an attention item",
            json::<api::Accepted>(),
            control::mark,
        )
        .body::<klbr_core::attention::Mark>()
        .admits(),
        Route::new(
            get,
            path::DISCORD_CONVERSATIONS,
            "The conversations on Discord, the most recently heard first",
            json::<api::Conversations>(),
            read::discord_conversations,
        ),
        Route::new(get, path::RECORDS, "Records as they are kept", json::<api::Records>(), read::records)
            .query::<api::RecordsQuery>(),
        Route::new(get, path::HISTORY, "Searches the history", json::<api::Hits>(), read::history)
            .query::<api::HistoryQuery>(),
        Route::new(get, path::SOUL, "The soul in force", json::<api::Soul>(), read::soul),
        Route::new(
            put,
            path::SOUL,
            "Replaces the soul, from the next turn on",
            json::<api::Accepted>(),
            control::soul,
        )
        .body::<api::Soul>()
        .admits(),
        Route::new(
            get,
            path::POLICY,
            "The policy in force: its hooks, its process, what failed last",
            json::<api::policy::Policy>(),
            policy::policy,
        ),
        Route::new(
            get,
            path::POLICY_LOG,
            "Everything that was put in force, when, and why",
            json::<api::policy::PolicyLog>(),
            policy::log,
        ),
        Route::new(
            post,
            path::POLICY_ACTIVATE,
            "Tries an activation manifest, and puts it in force",
            json::<api::policy::Activated>(),
            policy::activate,
        )
        .body::<api::policy::Candidate>()
        .admits(),
        Route::new(
            post,
            path::POLICY_DRY_RUN,
            "Tries an activation manifest; changes nothing",
            json::<api::policy::Trial>(),
            policy::dry_run,
        )
        .body::<api::policy::DryRun>(),
        Route::new(
            post,
            path::POLICY_ROLLBACK,
            "Goes back to what was in force before; needs no Python",
            json::<api::policy::Activated>(),
            policy::roll_back,
        )
        .body::<api::policy::RollBack>()
        .admits(),
        Route::new(
            get,
            path::WORKBENCH,
            "How the workbench is doing",
            json::<api::policy::WorkbenchStatus>(),
            workbench::status,
        ),
        Route::new(
            get,
            path::WORKBENCH_VARS,
            "The variables that cells left",
            json::<api::policy::Variables>(),
            workbench::variables,
        ),
        Route::new(
            post,
            path::WORKBENCH_RESTART,
            "Starts the workbench over; its variables are gone",
            json::<api::Done>(),
            workbench::restart,
        ),
        Route::new(get, path::MEMORY, "What is remembered", json::<api::Memories>(), memory::list)
            .query::<api::MemoryQuery>(),
        Route::new(
            post,
            path::MEMORY,
            "Changes what is remembered; of what is pinned, the model is told in the next frame",
            json::<api::Remembered>(),
            memory::change,
        )
        .body::<api::MemoryEdit>()
        .admits(),
        Route::new(
            post,
            path::INTERRUPT,
            "Ends the running turn",
            json::<api::Accepted>(),
            control::interrupt,
        )
        .admits(),
        Route::new(
            post,
            path::STOP,
            "Ends the running turn and stays quiet",
            json::<api::Accepted>(),
            control::stop,
        )
        .admits(),
        Route::new(post, path::RESET, "Forgets the conversation", json::<api::Accepted>(), control::reset)
            .admits(),
        Route::new(
            post,
            path::COMPACT,
            "Summarises the conversation",
            json::<api::Accepted>(),
            control::compact,
        )
        .admits(),
        Route::new(
            post,
            path::RESOLVE,
            "Decides about a held effect",
            json::<api::Accepted>(),
            control::resolve,
        )
        .body::<api::Resolution>()
        .admits(),
    ]
}
