//! From HELLO to the last close code.

use klbr_tests::discord_double::{Answer, CutHow, Tricks, What};
use serde_json::json;
use twilight_gateway::{
    ConfigBuilder, Event, EventTypeFlags, Intents, Shard, ShardId, ShardState, StreamExt as _,
};
use twilight_model::channel::message::MessageType;
use twilight_model::gateway::payload::incoming::GuildCreate;

use super::{Scene, WATCHDOG, end, heard, text, until};

#[tokio::test]
async fn a_shard_identifies_and_hears() {
    let scene = Scene::new().await;
    let mut shard = scene.shard();
    let Event::Ready(ready) = until(&mut shard, |event| matches!(event, Event::Ready(_))).await else {
        unreachable!("nothing else was wanted")
    };
    assert_eq!((ready.version, ready.guilds.len()), (10, 1));
    assert_eq!(ready.user.id.get(), scene.bot().0);
    assert_eq!(ready.resume_gateway_url, format!("{}/resume", scene.double.ready().gateway));
    let created = until(&mut shard, |event| matches!(event, Event::GuildCreate(_))).await;
    let Event::GuildCreate(created) = created else { unreachable!("nothing else was wanted") };
    let GuildCreate::Available(guild) = *created else { panic!("the guild is not there") };
    assert_eq!((guild.channels.len(), guild.members.len(), guild.roles.len()), (1, 3, 1));
    let said = scene.say("hello <@1>").await;
    let event = until(&mut shard, |event| matches!(event, Event::MessageCreate(_))).await;
    let Event::MessageCreate(message) = event else { unreachable!("nothing else was wanted") };
    assert_eq!((message.id.get(), message.content.as_str()), (said.0, "hello <@1>"));
    assert_eq!(
        (message.kind, message.guild_id.map(|id| id.get())),
        (MessageType::Regular, Some(scene.guild.0))
    );
    assert!(message.member.is_some() && !message.author.bot);
    let noted = scene.happened("identify", |what| matches!(what, What::Identified { .. })).await;
    let What::Identified { shard: [0, 1], intents, too_soon: false, .. } = noted.what else {
        panic!("{noted:?}")
    };
    assert_eq!(intents, Intents::all().bits());
}
