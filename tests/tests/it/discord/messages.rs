//! Messages: made, found under their nonce, refused, read back.

use klbr_tests::discord_double::{React, Say};
use serde_json::{Value, json};
use twilight_gateway::Event;
use twilight_http::request::channel::reaction::RequestReactionType;
use twilight_model::channel::message::{AllowedMentions, MentionType};

use super::{MESSAGES, Scene, channel_id, message_id, refusal, until};

#[tokio::test]
async fn a_message_is_made_told_of_and_recorded() {
    let scene = Scene::new().await;
    let (mut shard, http) = (scene.identified().await, scene.http());
    let asked = scene.say("anyone?").await;
    let request = http.create_message(channel_id(scene.channel)).content("me").reply(message_id(asked));
    let made = request.nonce(77).await.unwrap().model().await.unwrap();
    assert_eq!(made.referenced_message.unwrap().content, "anyone?");
    assert_eq!(made.mentions[0].id.get(), scene.person.0);
    let own = |event: &Event| matches!(event, Event::MessageCreate(message) if message.author.bot);
    let Event::MessageCreate(told) = until(&mut shard, own).await else { unreachable!() };
    assert_eq!((told.id, told.timestamp.as_micros()), (made.id, made.timestamp.as_micros()));
    let created = scene.control().messages().await.unwrap();
    assert_eq!(created.len(), 1);
    assert_eq!((created[0].nonce.clone(), created[0].reference), (Some(json!(77)), Some(asked)));
    assert_eq!((created[0].channel, created[0].enforced), (scene.channel, false));
    let request = scene.request("it", |asked| asked.is("POST", MESSAGES) && asked.outcome.is_some()).await;
    let outcome = request.outcome.unwrap();
    assert_eq!((outcome.status, outcome.message), (Some(200), Some(created[0].id)));
    assert_eq!((request.number, request.body["content"].as_str()), (created[0].request, Some("me")));
}

#[tokio::test]
async fn an_enforced_nonce_makes_one_message_within_its_window() {
    let scene = Scene::new().await;
    let http = scene.http();
    let body = json!({"content": "once", "nonce": "effect-1", "enforce_nonce": true});
    let first = scene.post(&http, body.clone()).await.unwrap();
    let again = scene.post(&http, body.clone()).await.unwrap();
    assert_eq!((&first["id"], &first["nonce"]), (&again["id"], &json!("effect-1")));
    let created = scene.control().messages().await.unwrap();
    assert_eq!((created.len(), created[0].enforced), (1, true));
    assert_eq!(scene.control().summary().await.unwrap().known_nonces, 1);
    // Without being enforced it dedupes nothing.
    scene.post(&http, json!({"content": "once", "nonce": "effect-1"})).await.unwrap();
    assert_eq!(scene.control().messages().await.unwrap().len(), 2);
    assert_eq!(scene.control().summary().await.unwrap().repeated, 1);
    // In another channel it is another nonce, unless it is told otherwise.
    let other = scene.control().channel(scene.guild, "other").await.unwrap();
    let elsewhere = body.to_string();
    let send = || http.create_message(channel_id(other)).payload_json(elsewhere.as_bytes());
    send().await.unwrap();
    assert_eq!(scene.control().messages().await.unwrap().len(), 3);
    // After the window it is forgotten.
    scene.control().set(json!({"nonce_ms": 0})).await.unwrap();
    scene.post(&http, body).await.unwrap();
    assert_eq!(scene.control().messages().await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_nonce_whose_message_is_gone_says_so() {
    let scene = Scene::new().await;
    let http = scene.http();
    let body = json!({"content": "gone", "nonce": "n", "enforce_nonce": true});
    let made = scene.post(&http, body.clone()).await.unwrap();
    let id = made["id"].as_str().unwrap().parse().unwrap();
    scene.control().delete(scene.channel, id).await.unwrap();
    let error = scene.post(&http, body.clone()).await.unwrap_err();
    assert_eq!(refusal(&error), (404, 10008));
    assert!(scene.control().messages().await.unwrap()[0].deleted);
    scene.control().set(json!({"nonce_deleted": "create"})).await.unwrap();
    assert_ne!(scene.post(&http, body).await.unwrap()["id"], made["id"]);
}

#[tokio::test]
async fn what_is_no_message_is_refused_in_discords_words() {
    let scene = Scene::new().await;
    let http = scene.http();
    let fits = "é".repeat(2_000);
    scene.post(&http, json!({"content": fits})).await.unwrap();
    for (body, wanted) in [
        (json!({"content": "é".repeat(2_001)}), (400, 50035)),
        (json!({"content": " "}), (400, 50006)),
        (json!({"content": 7}), (400, 50035)),
        (json!({"content": "x", "nonce": "n".repeat(26)}), (400, 50035)),
        (json!({"content": "x", "message_reference": {"message_id": "5"}}), (400, 50035)),
        (json!({"content": "x", "allowed_mentions": {"parse": ["users"], "users": ["1"]}}), (400, 50035)),
    ] {
        let error = scene.post(&http, body.clone()).await.unwrap_err();
        assert_eq!(refusal(&error), wanted, "{body}");
    }
    let body = json!({"content": "x", "message_reference": {"message_id": "5", "fail_if_not_exists": false}});
    scene.post(&http, body).await.unwrap();
    assert_eq!(scene.control().messages().await.unwrap().len(), 2);
}

#[tokio::test]
async fn nobody_is_pinged_whom_the_message_may_not() {
    let scene = Scene::new().await;
    let http = scene.http();
    let role = scene.control().role(scene.guild, "all", 0, &[scene.person]).await.unwrap();
    let content = format!("@everyone <@&{role}> <@{}>", scene.person);
    let pings = async |mentions: Option<&AllowedMentions>| {
        let request = http.create_message(channel_id(scene.channel)).content(&content);
        request.allowed_mentions(mentions).await.unwrap();
        scene.control().messages().await.unwrap().pop().unwrap().pings
    };
    assert!(pings(Some(&AllowedMentions::default())).await.is_empty());
    let users = AllowedMentions { parse: vec![MentionType::Users], ..AllowedMentions::default() };
    let pinged = pings(Some(&users)).await;
    assert_eq!((pinged.users, pinged.roles, pinged.everyone), (vec![scene.person], vec![], false));
    let request = http.create_message(channel_id(scene.channel)).content(&content);
    request.await.unwrap();
    let pinged = scene.control().messages().await.unwrap().pop().unwrap().pings;
    assert!(pinged.everyone && pinged.roles == [role]);
}

#[tokio::test]
async fn a_history_is_read_from_new_to_old_and_has_no_nonces() {
    let scene = Scene::new().await;
    let http = scene.http();
    let mut ids = Vec::new();
    for n in 0..6 {
        ids.push(scene.say(&n.to_string()).await);
    }
    let page = async |query: &str| -> String {
        let url = format!("{}/channels/{}/messages?{query}", scene.double.ready().api, scene.channel);
        let request = reqwest::Client::new().get(url).header("authorization", "Bot double-token");
        let messages: Vec<Value> = request.send().await.unwrap().json().await.unwrap();
        messages.iter().map(|message| message["content"].as_str().unwrap()).collect()
    };
    assert_eq!(page("limit=3").await, "543");
    assert_eq!(page(&format!("limit=2&before={}", ids[3])).await, "21");
    assert_eq!(page(&format!("limit=2&after={}", ids[1])).await, "32");
    assert_eq!(page(&format!("limit=4&around={}", ids[2])).await, "3210");
    scene.post(&http, json!({"content": "n", "nonce": "n", "enforce_nonce": true})).await.unwrap();
    let latest = http.channel_messages(channel_id(scene.channel)).limit(1).await.unwrap();
    let latest: Value = serde_json::from_slice(&latest.bytes().await.unwrap()).unwrap();
    assert_eq!((&latest[0]["content"], &latest[0]["nonce"]), (&json!("n"), &Value::Null));
    let models = http.channel_messages(channel_id(scene.channel)).await.unwrap().models().await.unwrap();
    assert_eq!(models.len(), 7);
}

#[tokio::test]
async fn messages_are_edited_deleted_and_reacted_to_by_both_sides() {
    let scene = Scene::new().await;
    let (mut shard, http) = (scene.identified().await, scene.http());
    let channel = channel_id(scene.channel);
    let said = scene.say("frist").await;
    scene.control().edit(scene.channel, said, "first").await.unwrap();
    let update = until(&mut shard, |event| matches!(event, Event::MessageUpdate(_))).await;
    let Event::MessageUpdate(update) = update else { unreachable!() };
    assert!(update.content == "first" && update.edited_timestamp.is_some());
    let thumb = RequestReactionType::Unicode { name: "👍" };
    http.create_reaction(channel, message_id(said), &thumb).await.unwrap();
    let custom = RequestReactionType::Custom { id: twilight_model::id::Id::new(9), name: Some("blob") };
    http.create_reaction(channel, message_id(said), &custom).await.unwrap();
    let (emoji, user) = ("👍".to_owned(), scene.person);
    let react = React { channel: scene.channel, message: said, user, emoji, removes: false };
    assert!(scene.control().react(react.clone()).await.unwrap());
    assert!(!scene.control().react(react).await.unwrap());
    let by_person =
        |event: &Event| matches!(event, Event::ReactionAdd(added) if added.user_id.get() == scene.person.0);
    until(&mut shard, by_person).await;
    let read = http.message(channel, message_id(said)).await.unwrap().model().await.unwrap();
    assert_eq!(read.reactions.iter().map(|of| (of.count, of.me)).collect::<Vec<_>>(), [(2, true), (1, true)]);
    http.delete_current_user_reaction(channel, message_id(said), &thumb).await.unwrap();
    until(&mut shard, |event| matches!(event, Event::ReactionRemove(_))).await;
    let own = http.create_message(channel).content("mine").await.unwrap().model().await.unwrap();
    let edited = http.update_message(channel, own.id).content(Some("better")).await.unwrap();
    assert_eq!(edited.model().await.unwrap().content, "better");
    let error = http.update_message(channel, message_id(said)).content(Some("no")).await.unwrap_err();
    assert_eq!(refusal(&error), (403, 50005));
    http.delete_message(channel, own.id).await.unwrap();
    until(&mut shard, |event| matches!(event, Event::MessageDelete(_))).await;
    let error = http.message(channel, own.id).await.unwrap_err();
    assert_eq!(refusal(&error), (404, 10008));
    http.create_typing_trigger(channel).await.unwrap();
    scene.control().typing(scene.channel, scene.person).await.unwrap();
    let types =
        |event: &Event| matches!(event, Event::TypingStart(start) if start.user_id.get() == scene.person.0);
    until(&mut shard, types).await;
}

#[tokio::test]
async fn what_people_say_has_files_stickers_and_the_message_that_it_answers() {
    let scene = Scene::new().await;
    let mut shard = scene.identified().await;
    let first = scene.say("look").await;
    let attachment = json!({
        "id": "5", "filename": "../../etc/passwd", "size": 3, "url": "http://127.0.0.1/x",
        "proxy_url": "http://127.0.0.1/x", "content_type": "text/plain",
    });
    let say = Say {
        author: scene.person,
        channel: scene.channel,
        mentions: vec![scene.bot()],
        reply_to: Some(first),
        attachments: vec![attachment],
        stickers: vec![json!({"id": "6", "name": "wave", "format_type": 1})],
        ..Say::default()
    };
    scene.control().say_with(say.clone()).await.unwrap();
    let is_it = |event: &Event| matches!(event, Event::MessageCreate(message) if message.id.get() != first.0);
    let Event::MessageCreate(message) = until(&mut shard, is_it).await else { unreachable!() };
    assert_eq!(message.attachments[0].filename, "../../etc/passwd");
    assert_eq!(message.sticker_items[0].name, "wave");
    assert_eq!(message.referenced_message.as_ref().unwrap().id.get(), first.0);
    assert!(message.mentions.iter().any(|mention| mention.id.get() == scene.bot().0));
    let missed = scene.control().say_with(Say { missed: true, reply_to: None, ..say }).await.unwrap();
    let history = scene.control().history(scene.channel).await.unwrap();
    assert_eq!(history.last().unwrap()["id"], missed.to_string());
}
