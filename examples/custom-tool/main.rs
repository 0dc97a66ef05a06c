//! A tool of one's own: typed arguments in, an outcome out. The schema is derived from the type.

use klbr_core::action::{Class, FailureKind, Outcome};
use klbr_core::config::Config;
use klbr_core::runtime::AgentBuilder;
use klbr_core::runtime::tool::{CallContext, Tool};
use klbr_core::testkit::{MemoryStore, Scripted, ScriptedModel};
use klbr_core::update::Happening;

/// Rolls dice.
struct Roll;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Dice {
    /// How many dice, 1 to 10.
    count: u32,
    /// How many sides each has.
    sides: u32,
}

#[async_trait::async_trait]
impl Tool for Roll {
    type Arguments = Dice;
    const NAME: &'static str = "roll";
    const DESCRIPTION: &'static str = "Rolls dice and says what they show.";
    // A repeat would roll again, but nobody is hurt by that.
    const CLASS: Class = Class::Pure;

    async fn call(&self, context: CallContext, dice: Dice) -> Outcome {
        if !(1..=10).contains(&dice.count) || dice.sides == 0 {
            return Outcome::failed(FailureKind::Invalid, "Roll 1 to 10 dice with at least one side.");
        }
        // Dice for an example: what they show depends on the action that rolls them.
        let seed = context.action.step.turn.0 * 7 + u64::from(context.action.number) * 13;
        let shown: Vec<u64> =
            (0..u64::from(dice.count)).map(|n| (seed + n * 5) % u64::from(dice.sides) + 1).collect();
        Outcome::confirmed(format!("{shown:?}"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs anywhere: it rolls, with a mistake first, then tells.
    let model = ScriptedModel::new([
        Scripted::calls(&[("roll", r#"{"count":"two","sides":6}"#)]),
        Scripted::calls(&[("roll", r#"{"count":2,"sides":6}"#)]),
        Scripted::calls(&[
            ("local_send", r#"{"content":"I rolled two dice for you."}"#),
            ("wait_and_continue", r#"{"duration":"10m"}"#),
        ]),
    ]);
    let config = Config::new("ada".parse()?, "scripted");
    let agent = AgentBuilder::new(config, MemoryStore::new(), model).tool(Roll).start().await?;
    let mut updates = agent.handle().updates(None).await?;
    agent.handle().say("roll", "Roll two dice, please.").await?;
    while let Some(update) = updates.next().await? {
        match update.happening {
            Happening::ActionStarted { name, arguments, .. } => println!("{name} {arguments}"),
            Happening::ActionEnded { result, .. } => println!("  {result}"),
            Happening::Delivered { text, .. } => println!("said: {text}"),
            Happening::Waiting { .. } => break,
            _ => {}
        }
    }
    agent.shutdown().await;
    Ok(())
}
