//! What a model is shown of a happening (`B-DIS-11`).
//!
//! Owns the attributes' names. Values are hostile text: the core escapes them; here they are only kept short.

use std::sync::Arc;

use klbr_core::event::{Author, Body};

use super::{author, is_private};
use crate::id::UserId;
use crate::payload::{Attachment, Channel, Embed, Kind, Message, Reaction};
use crate::world::{Place, World};

/// Characters of a quoted message that are shown.
const QUOTE: usize = 300;
/// Characters of an embed that are shown.
const EMBED: usize = 500;
/// Characters of a name that are shown.
const NAME: usize = 100;
/// Characters of an address that are shown.
const URL: usize = 1_000;
/// Things of one kind that are shown of a message.
const MOST: usize = 10;

type Attributes = Vec<(Arc<str>, Arc<str>)>;

/// The first characters of a text, and a sign that there are more.
pub(crate) fn short(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A message: who, what, where, and what came with it.
pub(crate) fn message_body(world: &World, place: &Place, message: &Message) -> Body {
    let is_mention = message.mentions.iter().any(|user| Some(user.id) == world.me);
    let mut attributes = whereabouts(world, place, is_mention.then_some("mention"));
    if let Some(what) = message.system() {
        put(&mut attributes, "notice", what.to_owned());
    }
    if let Some(reference) = message.reference {
        put(&mut attributes, "reply_to", reference.external());
    }
    if let Some(quoted) = &message.quoted {
        if let Some(name) = &quoted.author {
            put(&mut attributes, "reply_author", short(name, NAME));
        }
        put(&mut attributes, "reply_text", short(&quoted.text, QUOTE));
    }
    let named: Vec<String> = message
        .mentions
        .iter()
        .filter(|user| Some(user.id) != world.me)
        .take(MOST)
        .map(|user| format!("{} ({})", short(&user.name, NAME), user.id))
        .collect();
    if !named.is_empty() {
        put(&mut attributes, "mentions", named.join(", "));
    }
    put_each(&mut attributes, "forwarded", message.forwarded.iter().map(|text| short(text, QUOTE)));
    put_each(&mut attributes, "attachment", message.attachments.iter().map(attachment));
    put_each(&mut attributes, "embed", message.embeds.iter().map(embed));
    put_each(&mut attributes, "sticker", message.stickers.iter().map(|name| short(name, NAME)));
    if let Some(poll) = &message.poll {
        put(&mut attributes, "poll", short(poll, EMBED));
    }
    Body { author: message.author.as_ref().map(author), text: message.content.as_str().into(), attributes }
}

/// A message was taken back.
pub(super) fn deletion(world: &World, place: &Place) -> Body {
    Body { attributes: whereabouts(world, place, None), ..Body::default() }
}

/// A reaction to a message of the agent's.
pub(super) fn reaction(world: &World, place: &Place, reaction: &Reaction, emoji: &str) -> Body {
    let name = reaction.name.clone().or_else(|| dm_partner(place)).unwrap_or_else(|| nameless(reaction.user));
    let who = Author { id: reaction.user.to_string().into(), name: short(&name, NAME).into() };
    let mut attributes = whereabouts(world, place, None);
    put(&mut attributes, "reaction", short(emoji, NAME));
    Body { author: Some(who), text: short(emoji, NAME).into(), attributes }
}

/// A thread that was made.
pub(super) fn thread(world: &World, place: &Place, thread: &Channel) -> Body {
    let mut attributes = whereabouts(world, place, None);
    put(&mut attributes, "notice", "thread created".to_owned());
    put(&mut attributes, "thread", short(thread.name.as_deref().unwrap_or("unnamed"), NAME));
    put(&mut attributes, "thread_id", thread.id.to_string());
    let author =
        thread.owner.map(|owner| Author { id: owner.to_string().into(), name: nameless(owner).into() });
    Body { author, text: "".into(), attributes }
}

fn nameless(user: UserId) -> String {
    format!("user {user}")
}

fn dm_partner(place: &Place) -> Option<String> {
    place.name.clone().filter(|_| place.kind == Kind::Dm)
}

/// The role of the context, and the names of the place.
fn whereabouts(world: &World, place: &Place, address: Option<&str>) -> Attributes {
    let mut attributes = Vec::new();
    let context = match place.kind {
        _ if is_private(place) => "dm",
        Kind::Thread => address.unwrap_or("thread"),
        Kind::Guild | Kind::Mute | Kind::Dm | Kind::GroupDm => address.unwrap_or("guild"),
    };
    put(&mut attributes, "context", context.to_owned());
    let name = place.name.as_deref().filter(|_| place.kind != Kind::Dm).map(|name| short(name, NAME));
    if let (Kind::Thread, Some(parent)) = (place.kind, place.parent) {
        let parent = world.place(parent).and_then(|parent| parent.name.as_deref());
        put_some(&mut attributes, "channel", parent.map(|name| short(name, NAME)));
        put_some(&mut attributes, "thread", name);
    } else {
        put_some(&mut attributes, "channel", name);
    }
    let guild = place.guild.and_then(|guild| world.guild(guild));
    put_some(&mut attributes, "guild", guild.map(|name| short(name, NAME)));
    attributes
}

fn put(attributes: &mut Attributes, name: &str, value: String) {
    attributes.push((name.into(), value.into()));
}

fn put_some(attributes: &mut Attributes, name: &str, value: Option<String>) {
    if let Some(value) = value {
        put(attributes, name, value);
    }
}

/// Several things of one kind: `name`, `name_2`, and how many more there are.
fn put_each(attributes: &mut Attributes, name: &str, values: impl ExactSizeIterator<Item = String>) {
    let more = values.len().saturating_sub(MOST);
    for (index, value) in values.take(MOST).enumerate() {
        let name = if index == 0 { name.to_owned() } else { format!("{name}_{}", index + 1) };
        put(attributes, &name, value);
    }
    if more > 0 {
        put(attributes, &format!("{name}_more"), more.to_string());
    }
}

fn attachment(attachment: &Attachment) -> String {
    let kind = attachment.media_type.as_deref().unwrap_or("unknown type");
    let size = attachment.bytes.map_or("unknown size".to_owned(), |bytes| format!("{bytes} bytes"));
    let described = attachment.description.as_deref().map(|text| format!(" “{}”", short(text, QUOTE)));
    format!(
        "{} ({}, {size}){} {}",
        short(&attachment.name, NAME),
        short(kind, NAME),
        described.unwrap_or_default(),
        short(&attachment.url, URL)
    )
}

fn embed(embed: &Embed) -> String {
    let text = short(&embed.parts.join(" | "), EMBED);
    match &embed.url {
        Some(url) if text.is_empty() => short(url, URL),
        Some(url) => format!("{text} {}", short(url, URL)),
        None => text,
    }
}
