//! The API's paths, as a client fills them in and as the router knows them.

/// Every path below an agent, with `{name}` for the agent's name.
macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident = $path:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $path;)*
    };
}

paths! {
    /// `GET`, without a token: whether the daemon answers.
    HEALTH = "/healthz";
    /// `GET`: metrics in Prometheus' text format.
    METRICS = "/metrics";
    /// `GET`: this API's description.
    OPENAPI = "/openapi.json";
    /// `GET`: the agents.
    AGENTS = "/v1/agents";
    /// `GET`: what the model server offers.
    MODELS = "/v1/models";
    /// `POST`: stops the daemon in order.
    SHUTDOWN = "/v1/shutdown";
    /// `POST`: says something to the agent.
    MESSAGES = "/v1/agents/{name}/messages";
    /// `GET`: updates as server-sent events. `POST`: admits an external event.
    EVENTS = "/v1/agents/{name}/events";
    /// `GET`: updates over a WebSocket, which also takes messages.
    WS = "/v1/agents/{name}/ws";
    /// `GET`: how it is doing.
    STATUS = "/v1/agents/{name}/status";
    /// `GET`: where every event is.
    LEDGER = "/v1/agents/{name}/ledger";
    /// `GET`: the events that wait.
    INBOX = "/v1/agents/{name}/inbox";
    /// `GET`: one attention item, with what it says.
    ITEM = "/v1/agents/{name}/inbox/{item}";
    /// `POST`: decides about an attention item.
    MARK = "/v1/agents/{name}/inbox/mark";
    /// `GET`: the conversations on Discord.
    DISCORD_CONVERSATIONS = "/v1/agents/{name}/discord/conversations";
    /// `GET`: records as they are kept.
    RECORDS = "/v1/agents/{name}/records";
    /// `GET`: a search of the history.
    HISTORY = "/v1/agents/{name}/history";
    /// `GET`, `PUT`: the soul.
    SOUL = "/v1/agents/{name}/soul";
    /// `GET`: the policy in force.
    POLICY = "/v1/agents/{name}/policy";
    /// `GET`: everything that was put in force.
    POLICY_LOG = "/v1/agents/{name}/policy/log";
    /// `POST`: puts a manifest in force.
    POLICY_ACTIVATE = "/v1/agents/{name}/policy/activate";
    /// `POST`: tries a manifest.
    POLICY_DRY_RUN = "/v1/agents/{name}/policy/dry-run";
    /// `POST`: goes back to what was in force before.
    POLICY_ROLLBACK = "/v1/agents/{name}/policy/rollback";
    /// `GET`: the workbench.
    WORKBENCH = "/v1/agents/{name}/workbench";
    /// `GET`: its variables.
    WORKBENCH_VARS = "/v1/agents/{name}/workbench/vars";
    /// `POST`: starts it over.
    WORKBENCH_RESTART = "/v1/agents/{name}/workbench/restart";
    /// `GET`: what is remembered. `POST`: changes it.
    MEMORY = "/v1/agents/{name}/memory";
    /// `POST`: ends the running turn.
    INTERRUPT = "/v1/agents/{name}/interrupt";
    /// `POST`: ends the running turn and stays quiet.
    STOP = "/v1/agents/{name}/stop";
    /// `POST`: forgets the conversation.
    RESET = "/v1/agents/{name}/reset";
    /// `POST`: summarises the conversation.
    COMPACT = "/v1/agents/{name}/compact";
    /// `POST`: decides about a held effect.
    RESOLVE = "/v1/agents/{name}/effects/{action}/resolve";
}

/// A path with its agent filled in.
pub fn of(path: &str, agent: &str) -> String {
    path.replace("{name}", agent)
}
