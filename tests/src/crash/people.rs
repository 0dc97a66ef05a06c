//! The people of a home on Discord: what they say, and what Discord holds back.
//!
//! Owns the double and the scenes on it. What was said is read back from the double, so that a word that a kill cut short
//! counts exactly if it was said.

use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;

use super::evidence::{Participation, Said};
use super::home::CALMS;
use super::schedule::{Held, Place};
use super::{AtDiscord, CrashError};
use crate::daemon::Klbrd;
use crate::discord_double::{Asked, Control, DiscordDouble, Fault, Make, Noted, Snowflake, What};

/// The route of messages.
pub(super) const MESSAGES: &str = "/channels/{channel}/messages";

/// The gate at which requests are held.
const GATE: &str = "held";

/// What stands before a marker.
const PLEASE: &str = "Please answer ";

/// How long a nonce is trusted in every second home, in seconds: there, most of what a kill leaves open is looked up in
/// the channel's history.
const SHORT: &str = "0.05";

/// Somewhere that people speak.
#[derive(Clone, Copy, Debug)]
struct Spot {
    author: Snowflake,
    channel: Snowflake,
    is_direct: bool,
}

pub(super) struct People {
    double: DiscordDouble,
    spots: Vec<Spot>,
    said: usize,
}

impl People {
    /// Two people with a guild of two channels, and each in private.
    pub(super) async fn new() -> Result<People, CrashError> {
        let double = DiscordDouble::start().await?;
        let control = double.control();
        let (ada, bob) = (control.user("ada").await?, control.user("bob").await?);
        let guild = control.guild("house", &[ada, bob]).await?;
        let mut spots = Vec::new();
        for (author, name) in [(ada, "general"), (bob, "garden")] {
            let (private, open) = (control.direct(author).await?, control.channel(guild, name).await?);
            spots.push(Spot { author, channel: private, is_direct: true });
            spots.push(Spot { author, channel: open, is_direct: false });
        }
        Ok(People { double, spots, said: 0 })
    }

    /// A daemon that takes part here.
    pub(super) fn joined_by(&self, klbrd: Klbrd, home: u64) -> Klbrd {
        let klbrd = klbrd.discord(self.double.ready());
        if home.is_multiple_of(2) { klbrd } else { klbrd.env("KLBR_DISCORD_NONCE_SECS", SHORT) }
    }

    /// What is said everywhere first: a private conversation that the agent has never heard of cannot be caught up with.
    pub(super) async fn introduce(&mut self) -> Result<(), CrashError> {
        for spot in self.spots.clone() {
            self.speak_at(spot, true).await?;
        }
        Ok(())
    }

    /// Waits until the agent's session has begun.
    pub(super) async fn is_joined(&self) -> Result<(), CrashError> {
        let begins = |noted: &Noted| matches!(noted.what, What::Identified { .. });
        self.control().wait_gateway("a session", CALMS, begins).await?;
        Ok(())
    }

    /// In how many places people speak.
    pub(super) fn count(&self) -> usize {
        self.spots.len()
    }

    /// What happens while no daemon lives, and what will be held from the next one.
    pub(super) async fn meanwhile(
        &mut self,
        rng: &mut fastrand::Rng,
        next: Option<(Place, u32)>,
    ) -> Result<(), CrashError> {
        let control = self.double.control();
        control.clear_faults().await?;
        let is_history = matches!(next, Some((Place::Held(Held::History), _)));
        if is_history || rng.u32(0..6) == 0 {
            // What is said from now on is told by the history alone.
            control.expire().await?;
        }
        if let Some((Place::Held(held), passing)) = next {
            let (method, make, skip) = match held {
                Held::Asked => ("POST", Make::Hold(GATE.to_owned()), passing - 1),
                Held::Made => ("POST", Make::HoldAfter(GATE.to_owned()), passing - 1),
                Held::History => ("GET", Make::Hold(GATE.to_owned()), 0),
            };
            control.faults([Fault::new(make).on(method, MESSAGES).after(skip.into())]).await?;
        }
        for _ in 0..rng.u32(u32::from(is_history)..3) {
            self.speak_somewhere(rng).await?;
        }
        Ok(())
    }

    /// Returns once a request is held.
    pub(super) async fn held(&self) -> Result<Pin<Box<dyn Future<Output = bool> + Send>>, CrashError> {
        let control = self.double.control().clone();
        let before = control.summary().await?.requests;
        let is_it = move |asked: &Asked| asked.held && asked.outcome.is_none() && asked.number > before;
        Ok(Box::pin(async move { control.wait_request("a held request", CALMS, is_it).await.is_ok() }))
    }

    /// Lets what is held be done in the last moment: what comes of it is never heard.
    pub(super) async fn let_through(&self) -> Result<(), CrashError> {
        Ok(self.double.control().release(GATE).await?)
    }

    /// People speak for ever.
    pub(super) async fn speak(&mut self, rng: &mut fastrand::Rng) {
        loop {
            if self.speak_somewhere(rng).await.is_err() {
                return std::future::pending().await;
            }
            // Mostly the answer may come; sometimes the next message comes first.
            let pause = match rng.u32(0..4) {
                0 => rng.u64(0..60),
                _ => rng.u64(150..700),
            };
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    async fn speak_somewhere(&mut self, rng: &mut fastrand::Rng) -> Result<(), CrashError> {
        let spot = self.spots[rng.usize(..self.spots.len())];
        self.speak_at(spot, spot.is_direct || rng.u32(0..3) > 0).await
    }

    async fn speak_at(&mut self, spot: Spot, to_the_agent: bool) -> Result<(), CrashError> {
        self.said += 1;
        let bot = self.double.ready().bot;
        let words = match (to_the_agent, spot.is_direct) {
            (true, true) => format!("{PLEASE}msg-{}.", self.said),
            (true, false) => format!("<@{bot}> {PLEASE}msg-{}.", self.said),
            (false, _) => format!("Never mind number {}.", self.said),
        };
        self.double.control().say(spot.author, spot.channel, &words).await?;
        Ok(())
    }

    /// What the double has.
    pub(super) async fn look(&self) -> Result<Participation, CrashError> {
        let control = self.double.control();
        let mut seen = Participation { made: control.messages().await?, ..Participation::default() };
        for spot in &self.spots {
            for message in control.history(spot.channel).await? {
                let id = message["id"].as_str().and_then(|id| id.parse().ok());
                let (Some(id), false) = (id, message["author"]["bot"] == true) else { continue };
                match marker(&message["content"]) {
                    Some(marker) => seen.said.push(Said { id, marker }),
                    None => seen.chatter.push(id),
                }
            }
        }
        Ok(seen)
    }

    /// The figures, and the end of the double.
    pub(super) async fn close(mut self, seen: &Participation) -> Result<AtDiscord, CrashError> {
        let summary = self.control().summary().await?;
        self.double.process().kill().await?;
        Ok(AtDiscord {
            chatter: seen.chatter.len(),
            made: seen.made.len(),
            known_nonces: summary.known_nonces,
            resumed: summary.resumed,
            identified: summary.identified,
        })
    }

    pub(super) fn control(&self) -> &Control {
        self.double.control()
    }
}

fn marker(content: &Value) -> Option<String> {
    let rest = content.as_str()?.split_once(PLEASE)?.1;
    Some(rest.trim_end_matches('.').to_owned())
}
