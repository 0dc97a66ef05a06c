//! An agent on Discord, over the double: what it hears, how it speaks, and what survives.

#[path = "discord_agent/check.rs"]
mod check;
#[path = "discord_agent/crash.rs"]
mod crash;
#[path = "discord_agent/gateway.rs"]
mod gateway;
#[path = "discord_agent/hearing.rs"]
mod hearing;
#[path = "discord_agent/load.rs"]
mod load;
#[path = "discord_agent/speaking.rs"]
mod speaking;
#[path = "discord_agent/tools.rs"]
mod tools;

use std::sync::Arc;
use std::time::Duration;

use klbr_core::config::Config;
use klbr_core::ids::Seq;
use klbr_core::model::Message;
use klbr_core::record::Record;
use klbr_core::runtime::store::Store;
use klbr_core::runtime::{AgentBuilder, AgentHandle};
use klbr_core::testkit::{MemoryStore, Scripted, ScriptedModel};
use klbr_core::update::Happening;
use klbr_discord::{Discord, RunError, Settings, settings::Token};
use klbr_tests::discord_double::{Asked, Snowflake};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::discord::{MESSAGES, Scene, WATCHDOG};

/// One process's worth of an agent: dropped, it is gone as if killed.
struct Life {
    /// Of its own, so that its end is the end of everything that it was doing.
    runtime: Option<Runtime>,
    handle: AgentHandle,
    discord: Discord,
    model: ScriptedModel,
    listening: Option<JoinHandle<Result<(), RunError>>>,
}

/// The settings that point at a double.
fn settings(scene: &Scene) -> Settings {
    let ready = scene.double.ready();
    let mut settings = Settings::new(Token::new(&ready.token).unwrap());
    settings.api_url = ready.api.clone();
    settings.gateway_url = Some(ready.gateway.clone());
    settings.batch = Duration::from_millis(50);
    settings
}

impl Life {
    /// An agent that listens, on this store, with these replies.
    async fn begin(scene: &Scene, store: &MemoryStore, script: impl IntoIterator<Item = Scripted>) -> Life {
        Life::with(settings(scene), Arc::new(store.clone()), script).await
    }

    async fn with(
        settings: Settings,
        store: Arc<dyn Store>,
        script: impl IntoIterator<Item = Scripted>,
    ) -> Life {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let model = ScriptedModel::new(script);
        let asked = model.clone();
        let started = runtime.spawn(async move {
            let config = Config::new("ada".parse().unwrap(), "model");
            let discord = Discord::new(settings, store.clone(), config.agent.clone()).unwrap();
            let builder = AgentBuilder::from_shared(config, store, Arc::new(asked));
            let agent = discord.register(builder).start().await.unwrap();
            let handle = agent.handle().clone();
            let listening = tokio::spawn({
                let (discord, handle) = (discord.clone(), handle.clone());
                async move { discord.run(handle).await }
            });
            (handle, discord, listening)
        });
        let (handle, discord, listening) = started.await.unwrap();
        Life { runtime: Some(runtime), handle, discord, model, listening: Some(listening) }
    }

    /// Waits until a happening was admitted.
    async fn hears(&self, external_id: &str) {
        let wanted = |happening: &Happening| matches!(happening, Happening::Admitted { external_id: id, .. } if **id == *external_id);
        self.sees(external_id, wanted).await;
    }

    /// Waits for something that happened since the agent was made.
    async fn sees(&self, what: &str, wanted: impl Fn(&Happening) -> bool) -> Happening {
        let mut updates = self.handle.updates(Some(Seq(0))).await.unwrap();
        let search = async {
            loop {
                let update = updates.next().await.unwrap().expect("the agent lives");
                if wanted(&update.happening) {
                    return update.happening;
                }
            }
        };
        timeout(WATCHDOG, search).await.unwrap_or_else(|_| panic!("{what} does not come"))
    }

    /// Every happening admitted so far, in order.
    async fn admitted(&self) -> Vec<String> {
        let records = self.handle.store().records(self.handle.agent(), Seq(0), usize::MAX).await.unwrap();
        let admitted = records.into_iter().filter_map(|stamped| match stamped.record {
            Record::Admitted { event, .. } => Some(event.external_id.to_string()),
            _ => None,
        });
        admitted.collect()
    }

    /// The messages of the model's `number`-th request, as it reads them.
    async fn request(&self, number: usize) -> String {
        let requests = timeout(WATCHDOG, self.model.requests(number)).await;
        let requests = requests.unwrap_or_else(|_| panic!("request {number} does not come"));
        let text = |message: &Message| match message {
            Message::User { text, .. } | Message::Tool { text, .. } => text.to_string(),
            Message::Assistant(said) => said.text.to_string(),
        };
        requests[number - 1].messages.iter().map(text).collect::<Vec<_>>().join("\n")
    }

    /// Waits until the gateway's session has begun: what is said from now on is told.
    async fn is_listening(&self, scene: &Scene) {
        use klbr_tests::discord_double::What;
        scene
            .happened("a session", |what| matches!(what, What::Identified { .. } | What::Resumed { .. }))
            .await;
    }

    /// Ends everything at once, as a kill would.
    fn kill(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Stops the agent in order.
    async fn stop(mut self) {
        let handle = self.handle.clone();
        let listening = self.listening.take().expect("it listens");
        handle.shutdown().await;
        timeout(WATCHDOG, listening).await.expect("it stops listening").unwrap().unwrap();
        self.kill();
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A send with these arguments.
fn send(arguments: &str) -> Scripted {
    Scripted::calls(&[("discord_send", arguments)])
}

/// A reply that waits.
fn wait() -> Scripted {
    Scripted::calls(&[("wait_and_continue", r#"{"duration": "10m"}"#)])
}

/// Says something that mentions the bot.
async fn mention(scene: &Scene, content: &str) -> Snowflake {
    scene.say(&format!("<@{}> {content}", scene.bot())).await
}

/// The requests that would have made a message.
async fn posts(scene: &Scene) -> Vec<Asked> {
    let requests = scene.control().requests().await.unwrap();
    requests.into_iter().filter(|asked| asked.is("POST", MESSAGES)).collect()
}
