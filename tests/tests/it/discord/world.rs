//! Users, guilds, channels, threads, and who may do what there.

use klbr_tests::discord_double::{Command, NewUser, Overwrite, Snowflake};
use serde_json::json;
use twilight_gateway::Event;
use twilight_http::Client;
use twilight_model::guild::Permissions;
use twilight_model::id::Id;
use twilight_model::oauth::ApplicationFlags;

use super::{Scene, channel_id, heard, message_id, refusal, until};

fn denies(id: Snowflake, deny: Permissions) -> Overwrite {
    Overwrite { id, is_member: true, allow: 0, deny: deny.bits() }
}

#[tokio::test]
async fn the_bot_reads_who_and_where_it_is() {
    let scene = Scene::new().await;
    let http = scene.http();
    let me = http.current_user().await.unwrap().model().await.unwrap();
    assert!(me.bot && me.id.get() == scene.bot().0);
    let application = http.current_user_application().await.unwrap().model().await.unwrap();
    assert!(application.flags.unwrap().contains(ApplicationFlags::GATEWAY_MESSAGE_CONTENT_LIMITED));
    let gateway = http.gateway().authed().await.unwrap().model().await.unwrap();
    assert_eq!((gateway.url, gateway.shards), (scene.double.ready().gateway.clone(), 1));
    let guild_id = Id::new(scene.guild.0);
    let guild = http.guild(guild_id).await.unwrap().model().await.unwrap();
    assert_eq!((guild.name.as_str(), guild.roles.len()), ("house", 1));
    let channels = http.guild_channels(guild_id).await.unwrap().models().await.unwrap();
    assert_eq!(channels[0].name.as_deref(), Some("general"));
    let member = http.guild_member(guild_id, me.id).await.unwrap().model().await.unwrap();
    assert_eq!(member.user.id, me.id);
    let members = http.guild_members(guild_id).limit(10).await.unwrap().models().await.unwrap();
    assert_eq!(members.len(), 3);
    let roles = http.roles(guild_id).await.unwrap().models().await.unwrap();
    assert!(roles[0].permissions.contains(Permissions::SEND_MESSAGES));
    let guilds = http.current_user_guilds().await.unwrap().models().await.unwrap();
    assert_eq!(guilds[0].id, guild_id);
    let person = http.user(Id::new(scene.person.0)).await.unwrap().model().await.unwrap();
    assert_eq!((person.name.as_str(), person.bot), ("ada", false));
    let channel = http.channel(channel_id(scene.channel)).await.unwrap().model().await.unwrap();
    assert_eq!(channel.guild_id, Some(guild_id));
}

#[tokio::test]
async fn what_is_not_there_or_not_allowed_has_discords_code() {
    let scene = Scene::new().await;
    let http = scene.http();
    assert_eq!(refusal(&http.channel(Id::new(5)).await.unwrap_err()), (404, 10003));
    assert_eq!(refusal(&http.guild(Id::new(5)).await.unwrap_err()), (404, 10004));
    assert_eq!(refusal(&http.user(Id::new(5)).await.unwrap_err()), (404, 10013));
    let missing = http.message(channel_id(scene.channel), Id::new(5)).await.unwrap_err();
    assert_eq!(refusal(&missing), (404, 10008));
    let api = &scene.double.ready().api;
    let odd = reqwest::Client::new()
        .get(format!("{api}/channels/general"))
        .header("authorization", "Bot double-token")
        .send()
        .await
        .unwrap();
    let body: serde_json::Value = odd.json().await.unwrap();
    assert_eq!(body["errors"]["channel_id"]["_errors"][0]["code"], "NUMBER_TYPE_COERCE");
    let wrong =
        Client::builder().proxy(scene.double.ready().address.clone(), true).token("no".into()).build();
    assert_eq!(refusal(&wrong.current_user().await.unwrap_err()), (401, 0));
}

#[tokio::test]
async fn a_permission_is_taken_and_a_channel_too() {
    let scene = Scene::new().await;
    let (mut shard, http) = (scene.identified().await, scene.http());
    let channel = channel_id(scene.channel);
    let (control, bot) = (scene.control(), scene.bot());
    control.overwrite(scene.channel, denies(bot, Permissions::SEND_MESSAGES)).await.unwrap();
    until(&mut shard, |event| matches!(event, Event::ChannelUpdate(_))).await;
    let error = http.create_message(channel).content("x").await.unwrap_err();
    assert_eq!(refusal(&error), (403, 50013));
    control.overwrite(scene.channel, denies(bot, Permissions::READ_MESSAGE_HISTORY)).await.unwrap();
    let said = scene.say("unread").await;
    assert!(http.channel_messages(channel).await.unwrap().models().await.unwrap().is_empty());
    let reply = http.create_message(channel).content("x").reply(message_id(said)).await.unwrap_err();
    assert_eq!(refusal(&reply), (400, 160_002));
    control.overwrite(scene.channel, denies(bot, Permissions::VIEW_CHANNEL)).await.unwrap();
    assert_eq!(refusal(&http.channel(channel).await.unwrap_err()), (403, 50001));
    // What the bot does not see it does not hear either.
    scene.say("unseen").await;
    control.overwrite(scene.channel, denies(bot, Permissions::empty())).await.unwrap();
    scene.say("seen").await;
    assert_eq!([heard(&mut shard).await, heard(&mut shard).await], ["unread", "seen"]);
    control.delete_channel(scene.channel).await.unwrap();
    until(&mut shard, |event| matches!(event, Event::ChannelDelete(_))).await;
    let error = http.create_message(channel).content("x").await.unwrap_err();
    assert_eq!(refusal(&error), (404, 10003));
}

#[tokio::test]
async fn direct_conversations_are_opened_and_refused() {
    let scene = Scene::new().await;
    let (mut shard, http) = (scene.identified().await, scene.http());
    let person = Id::new(scene.person.0);
    let direct = http.create_private_channel(person).await.unwrap().model().await.unwrap();
    assert_eq!(direct.id.get(), scene.control().direct(scene.person).await.unwrap().0);
    http.create_message(direct.id).content("hello").await.unwrap();
    scene.control().say(scene.person, Snowflake(direct.id.get()), "hello yourself").await.unwrap();
    let is_it = |event: &Event| matches!(event, Event::MessageCreate(of) if of.content == "hello yourself");
    let Event::MessageCreate(message) = until(&mut shard, is_it).await else { unreachable!() };
    assert!(message.guild_id.is_none() && message.member.is_none());
    let error = http.create_private_channel(Id::new(5)).await.unwrap_err();
    assert_eq!(refusal(&error), (400, 50033));
    let shy = NewUser { name: "shy".into(), refuses_dms: true, ..NewUser::default() };
    let shy: Snowflake = scene.control().command(&Command::User(shy)).await.unwrap();
    let direct = scene.control().direct(shy).await.unwrap();
    let error = http.create_message(channel_id(direct)).content("x").await.unwrap_err();
    assert_eq!(refusal(&error), (403, 50007));
}

#[tokio::test]
async fn threads_are_opened_by_both_sides() {
    let scene = Scene::new().await;
    let (mut shard, http) = (scene.identified().await, scene.http());
    let said = scene.say("a topic").await;
    let channel = channel_id(scene.channel);
    let opened = http.create_thread_from_message(channel, message_id(said), "topic").await.unwrap();
    let thread = opened.model().await.unwrap();
    assert_eq!((thread.id.get(), thread.parent_id), (said.0, Some(channel)));
    until(&mut shard, |event| matches!(event, Event::ThreadCreate(_))).await;
    http.create_message(thread.id).content("inside").await.unwrap();
    let again = http.create_thread_from_message(channel, message_id(said), "topic").await.unwrap_err();
    assert_eq!(refusal(&again), (400, 160_004));
    let theirs = scene.control().thread(scene.channel, "theirs", None).await.unwrap();
    scene.control().say(scene.person, theirs, "in theirs").await.unwrap();
    let is_it = |event: &Event| matches!(event, Event::MessageCreate(of) if of.content == "in theirs");
    until(&mut shard, is_it).await;
    let active = http.active_threads(Id::new(scene.guild.0)).await.unwrap().model().await.unwrap();
    assert_eq!(active.threads.len(), 2);
    http.join_thread(channel_id(theirs)).await.unwrap();
    let archive = Command::Archive { channel: theirs, archived: true, locked: true };
    let _: serde_json::Value = scene.control().command(&archive).await.unwrap();
    let error = http.create_message(channel_id(theirs)).content("x").await.unwrap_err();
    assert_eq!(refusal(&error), (400, 160_005));
}

#[tokio::test]
async fn a_guild_comes_and_goes() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    let second = scene.control().guild("second", &[]).await.unwrap();
    let comes = |event: &Event| matches!(event, Event::GuildCreate(of) if of.id().get() == second.0);
    until(&mut shard, comes).await;
    let leave = Command::Leave { guild: second, user: scene.bot() };
    let _: serde_json::Value = scene.control().command(&leave).await.unwrap();
    let goes = |event: &Event| matches!(event, Event::GuildDelete(of) if of.id.get() == second.0);
    until(&mut shard, goes).await;
    assert_eq!(refusal(&scene.http().guild(Id::new(second.0)).await.unwrap_err()), (404, 10004));
}

#[tokio::test]
async fn the_control_refuses_what_it_does_not_know() {
    let scene = Scene::new().await;
    let refused = scene.control().set(json!({"hartbeat_ms": 5})).await.unwrap_err().to_string();
    assert!(refused.contains("unknown field `hartbeat_ms`"), "{refused}");
    let refused = scene.control().say(Snowflake(5), scene.channel, "x").await.unwrap_err().to_string();
    assert!(refused.ends_with("says 400: there is no user 5"), "{refused}");
}
