//! Policy in Rust: one owner for two decisions. A delivery at night is held for the operator.

use std::time::Duration;

use klbr_core::config::Config;
use klbr_core::event::Control;
use klbr_core::ids::Epoch;
use klbr_core::policy::{Answer, Bindings, HookFailure, Question, Slot, Verdict};
use klbr_core::runtime::AgentBuilder;
use klbr_core::runtime::policy::Policy;
use klbr_core::testkit::{MemoryStore, Scripted, ScriptedModel};
use klbr_core::update::Happening;

/// Holds what is said at night, and lets a quiet agent sleep for an hour.
struct Nights;

#[async_trait::async_trait]
impl Policy for Nights {
    fn slots(&self) -> Bindings {
        Bindings::from([
            (Slot::DeliveryReview, Duration::from_millis(300)),
            (Slot::Idle, Duration::from_millis(300)),
        ])
    }

    async fn decide(&self, _: Epoch, question: Question) -> Result<Answer, HookFailure> {
        Ok(match question {
            Question::DeliveryReview(review) if review.arguments.contains("night") => {
                Answer::Verdict(Verdict::Hold { reason: "nobody is woken at night".into() })
            }
            Question::Idle { .. } => Answer::Delay { millis: 3_600_000 },
            other => other.default_answer(),
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new([
        Scripted::calls(&[("local_send", r#"{"content":"Good night!"}"#)]),
        Scripted::calls(&[("wait_and_continue", r#"{"duration":"10m"}"#)]),
    ]);
    let config = Config::new("ada".parse()?, "scripted");
    let agent = AgentBuilder::new(config, MemoryStore::new(), model).policy(Nights).start().await?;
    let mut updates = agent.handle().updates(None).await?;
    agent.handle().say("night", "Say good night.").await?;
    while let Some(update) = updates.next().await? {
        match update.happening {
            Happening::Held { action, reason, .. } => {
                println!("held: {action}: {reason}");
                agent.handle().control("allow", Control::Resolve { action, allow: true }).await?;
            }
            Happening::Delivered { text, .. } => {
                println!("allowed by the operator, and said: {text}");
                break;
            }
            _ => {}
        }
    }
    agent.shutdown().await;
    Ok(())
}
