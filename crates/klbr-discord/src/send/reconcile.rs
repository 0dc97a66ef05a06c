//! How a delivery ended that an earlier process had begun (`C-EFF-5`).

use std::time::Duration;

use klbr_core::action::{Delivery, FailureKind, Outcome};
use klbr_core::time::Timestamp;
use tokio::time::Instant;

use super::attempt::{Before, ended};
use super::{DEADLINE, RESERVE, Speech};
use crate::discord::{Inner, now};
use crate::http::{Failure, PAGE, Page, is_by};
use crate::id::MessageId;
use crate::kept::Plan;
use crate::payload::Message;

/// How far Discord's clock may stand from ours.
const SKEW: Duration = Duration::from_secs(60);

impl Inner {
    /// Finds out whether something was said; within the nonce's window by saying it again under the same nonce.
    pub(crate) async fn reconcile(&self, delivery: &Delivery) -> Outcome {
        let speech = match self.speech(delivery) {
            Ok(speech) => speech,
            // It was refused before anything went out, and would have been then.
            Err(refusal) => return refusal,
        };
        let age = now().since(delivery.first_attempted());
        let window = self.settings.nonce_window;
        let plan = match self.kept.plan(delivery.action()).await {
            Ok(plan) => plan,
            Err(error) => return Outcome::unknown(format!("Its plan cannot be read: {error}.")),
        };
        match plan {
            // The plan is kept before the first request.
            None if age < window => match self.begin(delivery, &speech).await {
                Ok(plan) => self.speak(delivery, &speech, plan, Before::Nothing, window).await,
                Err(refusal) => refusal,
            },
            None => Outcome::failed(
                FailureKind::Stale,
                "Not sent: the process ended before the request was made, and that is too long ago.",
            ),
            Some(plan) if age < window => {
                self.speak(delivery, &speech, plan, Before::Unclear, window - age).await
            }
            Some(plan) => self.look_up(delivery, &speech, plan).await,
        }
    }

    /// Reads the channel from the attempt's time on: exactly one own message with equal content and reference, claimed
    /// by no other receipt, confirms a part; none or several leaves it unknown.
    async fn look_up(&self, delivery: &Delivery, speech: &Speech, mut plan: Plan) -> Outcome {
        let total = speech.parts.len();
        let unknown = |plan: &Plan, words: String| {
            let outcome = Outcome::unknown(format!(
                "{} of {total} messages were sent for certain; whether more were is not known: {words}. Nothing is \
                 sent again.",
                plan.confirmed.len()
            ));
            ended(outcome, speech, plan, made(plan))
        };
        if plan.confirmed.len() < total {
            let claimed = match self.kept.claimed_by_others(plan.channel, delivery.action()).await {
                Ok(claimed) => claimed,
                Err(error) => return unknown(&plan, error.to_string()),
            };
            let own = match self.own_messages(plan.channel, delivery.first_attempted()).await {
                Ok(own) => own,
                Err(failure) => return unknown(&plan, failure.to_string()),
            };
            while plan.confirmed.len() < total {
                let index = plan.confirmed.len();
                let reply_to = plan.reply_to.filter(|_| index == 0);
                let is_it = |message: &&Message| {
                    message.content.trim() == speech.parts[index].trim()
                        && has_reference(message, reply_to, speech.reply_to.is_some())
                        && !claimed.contains(&message.id)
                        && !plan.confirmed.contains(&Some(message.id))
                };
                match own.iter().filter(is_it).collect::<Vec<_>>()[..] {
                    [message] => {
                        let message = message.id;
                        plan.confirmed.push(Some(message));
                    }
                    [] => return unknown(&plan, "the channel has no such message".to_owned()),
                    _ => return unknown(&plan, "the channel has several such messages".to_owned()),
                }
            }
            if let Err(error) = self.kept.keep_plan(delivery.action(), &plan).await {
                tracing::warn!(action = %delivery.action(), %error, "what was sent could not be kept");
            }
        }
        Outcome::sent(speech.observation(&plan), speech.sent(&plan, made(&plan)))
    }

    /// The agent's own messages in a channel from a little before an attempt to a little after its last instant.
    async fn own_messages(
        &self,
        channel: crate::id::ChannelId,
        attempted: Timestamp,
    ) -> Result<Vec<Message>, Failure> {
        let deadline = Instant::now() + DEADLINE - RESERVE;
        let known = self.world().me;
        let me = match known {
            Some(me) => Some(me),
            None => self.http.me(deadline).await?.map(|me| me.id),
        };
        let early = Timestamp(attempted.0.saturating_sub(i64::try_from(SKEW.as_millis()).unwrap_or(0)));
        let late = attempted + DEADLINE + SKEW;
        let mut after = MessageId::first_of(early);
        let mut own = Vec::new();
        loop {
            let fetched = self.http.messages(channel, Page::After(after), PAGE, deadline).await?;
            let Some(last) = fetched.messages.last().map(|message| message.id) else { return Ok(own) };
            own.extend(fetched.messages.into_iter().filter(|message| is_by(message, me)));
            if !fetched.is_full || last.at() > late || last <= after {
                return Ok(own);
            }
            after = last;
        }
    }
}

/// The messages that are known to have been made.
fn made(plan: &Plan) -> Vec<String> {
    plan.confirmed.iter().flatten().map(|message| message.external()).collect()
}

/// Whether a message refers to what the delivery wanted it to; a target that is gone may have been left out.
fn has_reference(message: &Message, reply_to: Option<MessageId>, is_needed: bool) -> bool {
    message.reference == reply_to || (message.reference.is_none() && !is_needed)
}
