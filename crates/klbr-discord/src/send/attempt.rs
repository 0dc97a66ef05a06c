//! One attempt of a delivery: requests with the same nonce until the end is certain, or time is over (`C-EFF-5`).

use std::time::Duration;

use klbr_core::action::{Delivery, FailureKind, Outcome};
use tokio::time::{Instant, sleep};

use super::{DEADLINE, RESERVE, Speech, nonce};
use crate::discord::Inner;
use crate::http::{Failure, Page, Post};
use crate::id::MessageId;
use crate::kept::Plan;

/// The first distance between two requests for one message.
const FIRST_PAUSE: Duration = Duration::from_millis(400);
/// The longest distance.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Own messages that are looked at for one whose answer could not be read.
const LOOK_BACK: u16 = 25;

/// Whether an earlier request for the next part may have been carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// There was none.
    Nothing,
    /// There was one, and its end is not known.
    Unclear,
}

/// How the requests for one part ended.
enum End {
    /// The message was made; its id, if that is known.
    Made(Option<MessageId>),
    /// It was not made.
    Refused(FailureKind, String),
    /// It cannot be known.
    Unknown(String),
}

impl Inner {
    /// Makes the parts of a delivery that are not confirmed yet, in order, and answers with its receipt.
    ///
    /// `trusted` is how long from now on a nonce of its first attempt still prevents a second message.
    pub(super) async fn speak(
        &self,
        delivery: &Delivery,
        speech: &Speech,
        mut plan: Plan,
        mut before: Before,
        trusted: Duration,
    ) -> Outcome {
        let start = Instant::now();
        let deadline = start + DEADLINE - RESERVE;
        let total = speech.parts.len();
        let mut made: Vec<String> =
            plan.confirmed.iter().flatten().map(|message| message.external()).collect();
        while plan.confirmed.len() < total {
            let index = plan.confirmed.len();
            let nonce = nonce(
                &self.agent,
                &self.settings.source,
                delivery.action(),
                delivery.first_attempted(),
                index,
            );
            let post = Post {
                channel: speech.channel,
                content: &speech.parts[index],
                nonce: &nonce,
                reply_to: plan.reply_to.filter(|_| index == 0),
                needs_target: speech.reply_to.is_some(),
                mentions: self.settings.allowed_mentions,
            };
            // Only the first part was attempted when the effect began; a later one has its window to itself.
            let trusted = match before {
                Before::Unclear => start + trusted,
                Before::Nothing => Instant::now() + self.settings.nonce_window,
            };
            match self.part(&post, before, trusted, deadline).await {
                End::Made(message) => {
                    plan.confirmed.push(message);
                    made.push(message.map_or(format!("nonce:{nonce}"), MessageId::external));
                }
                End::Refused(why, words) => {
                    let words = match index {
                        0 => format!("Not sent: {words}."),
                        _ => format!("Failed after {index} of {total} messages: {words}."),
                    };
                    return ended(Outcome::failed(why, words), speech, &plan, made);
                }
                End::Unknown(words) => {
                    let words = match (index, total) {
                        (_, 1) => format!("Whether it was sent is not known: {words}. It is not sent again."),
                        _ => format!(
                            "{index} of {total} messages were sent; whether the next one was is not known: {words}. \
                             It is not sent again."
                        ),
                    };
                    return ended(Outcome::unknown(words), speech, &plan, made);
                }
            }
            before = Before::Nothing;
            // A receipt that cannot be kept here is still the core's; what is lost is only a claim.
            if let Err(error) = self.kept.keep_plan(delivery.action(), &plan).await {
                tracing::warn!(action = %delivery.action(), %error, "what was sent could not be kept");
            }
        }
        Outcome::sent(speech.observation(&plan), speech.sent(&plan, made))
    }

    /// Requests one message until its end is certain. Every request has the same nonce.
    async fn part(&self, post: &Post<'_>, before: Before, trusted: Instant, deadline: Instant) -> End {
        let mut before = before;
        let mut pause = FIRST_PAUSE;
        // Once a request may have been carried out, the nonce alone keeps the next one from being a second message.
        let until = |before| match before {
            Before::Unclear => trusted.min(deadline),
            Before::Nothing => deadline,
        };
        loop {
            let failure = match self.http.post(post, until(before)).await {
                Ok(Some(message)) => {
                    let mut world = self.world();
                    // The answer does not say what sort of place it is: one that is not known stays so.
                    if world.place(message.channel).is_some() {
                        world.saw(&message);
                    }
                    return End::Made(Some(message.id));
                }
                Ok(None) => return End::Made(self.find_made(post, deadline).await),
                Err(failure) => failure,
            };
            match (&failure, before) {
                // The nonce was known, and its message is gone: it had been made, and then deleted.
                (_, Before::Unclear) if failure.is_unknown_message() => return End::Made(None),
                (Failure::Refused { .. }, Before::Nothing) => {
                    return End::Refused(FailureKind::Refused, failure.to_string());
                }
                (Failure::Limited(_), Before::Nothing) => {
                    return End::Refused(
                        FailureKind::TimedOut,
                        format!("{failure}, longer than there is time"),
                    );
                }
                (Failure::Refused { .. } | Failure::Limited(_), Before::Unclear) => {
                    return End::Unknown(format!("an answer was lost, and then {failure}"));
                }
                (Failure::Unclear(words), _) => {
                    tracing::warn!(channel = %post.channel, nonce = post.nonce, words, "a message's answer was lost");
                    before = Before::Unclear;
                }
                (Failure::NotSent(words), _) => {
                    tracing::warn!(channel = %post.channel, words, "Discord cannot be reached: trying again");
                }
            }
            let wait = pause.mul_f64(0.5 + fastrand::f64());
            pause = (pause * 2).min(LONGEST_PAUSE);
            if Instant::now() + wait >= until(before) {
                return match before {
                    Before::Unclear => End::Unknown(failure.to_string()),
                    Before::Nothing => End::Refused(FailureKind::TimedOut, failure.to_string()),
                };
            }
            sleep(wait).await;
        }
    }

    /// Looks for a message that was made and whose answer could not be read.
    async fn find_made(&self, post: &Post<'_>, deadline: Instant) -> Option<MessageId> {
        let me = self.world().me;
        let fetched = self.http.messages(post.channel, Page::Newest, LOOK_BACK, deadline).await.ok()?;
        let is_it = |message: &&crate::payload::Message| {
            crate::http::is_by(message, me) && message.content.trim() == post.content.trim()
        };
        fetched.messages.iter().rev().find(is_it).map(|message| message.id)
    }
}

/// An outcome that tells what was said before it ended.
pub(super) fn ended(mut outcome: Outcome, speech: &Speech, plan: &Plan, made: Vec<String>) -> Outcome {
    if !made.is_empty() {
        outcome.sent = Some(Box::new(speech.sent(plan, made)));
    }
    outcome
}
