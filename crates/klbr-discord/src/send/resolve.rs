//! Where something goes (`B-DIS-6`): what the call names, else what the frame says, else nowhere.

use klbr_core::action::Attempt;
use klbr_core::event::Conversation;

use crate::id::ChannelId;

/// Conversations that an error names, at most.
const CHOICES: usize = 20;

/// How a call names a place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place<'a> {
    /// Its alias, such as `d1` or `conv:d1`.
    pub(crate) conversation: Option<&'a str>,
    /// Its id, or its alias.
    pub(crate) channel: Option<&'a str>,
}

/// The conversation that a call means.
///
/// # Errors
///
/// Fails with what is wrong and what there is to choose from.
pub(crate) fn resolve(attempt: &Attempt, instance: &str, place: Place<'_>) -> Result<Conversation, String> {
    let given = |name: Option<&str>| name.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    if let Some(name) = given(place.conversation) {
        return named(attempt, instance, &name)
            .ok_or_else(|| format!("there is no conversation {name:?}; {}", known(attempt, instance)));
    }
    if let Some(name) = given(place.channel) {
        let channel = name.parse::<ChannelId>().ok().map(|id| conversation(instance, id));
        return channel.or_else(|| named(attempt, instance, &name)).ok_or_else(|| {
            format!(
                "{name:?} is neither a channel's id nor a known conversation; {}",
                known(attempt, instance)
            )
        });
    }
    if let Some(only) = attempt.frame.destination.as_ref().filter(|only| &*only.instance == instance) {
        return Ok(only.clone());
    }
    let here: Vec<String> = attempt
        .frame
        .anchors
        .iter()
        .filter(|anchor| &*anchor.conversation.instance == instance)
        .map(|anchor| alias(attempt, &anchor.conversation))
        .collect();
    Err(match here[..] {
        [] => format!(
            "conversation_id is needed: this turn has no conversation of Discord; {}",
            known(attempt, instance)
        ),
        _ => format!(
            "conversation_id is needed: this turn has several conversations, or one beside others: {}",
            here.join(", ")
        ),
    })
}

fn named(attempt: &Attempt, instance: &str, name: &str) -> Option<Conversation> {
    let known = attempt.conversations.named(instance, name).cloned();
    // The bare id of a conversation that is known names it too.
    known.or_else(|| {
        let by_id = conversation(instance, name.parse().ok()?);
        attempt.conversations.alias(&by_id).map(|_| by_id.clone())
    })
}

fn conversation(instance: &str, channel: ChannelId) -> Conversation {
    Conversation { instance: instance.into(), id: channel.to_string().into() }
}

fn alias(attempt: &Attempt, conversation: &Conversation) -> String {
    attempt.conversations.alias(conversation).map_or(conversation.id.to_string(), |alias| alias.to_string())
}

fn known(attempt: &Attempt, instance: &str) -> String {
    let of_it =
        |(conversation, alias): (&Conversation, _)| (&*conversation.instance == instance).then_some(alias);
    let aliases: Vec<String> =
        attempt.conversations.iter().filter_map(of_it).take(CHOICES).map(ToString::to_string).collect();
    match aliases[..] {
        [] => "none is known yet".to_owned(),
        _ => format!("known are {}", aliases.join(", ")),
    }
}
