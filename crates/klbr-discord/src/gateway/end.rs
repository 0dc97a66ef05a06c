//! How a connection to the gateway ends.

/// How one connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It broke, or was told to be made anew; the session goes on.
    Lost(String),
    /// The session is over; another one begins.
    Invalid(String),
    /// No connection came about.
    Unreachable(String),
    /// More was told than can be admitted for now.
    Overflow,
    /// Nobody takes what is told any more.
    Closed,
    /// It makes no sense to try again.
    Fatal(Fatal),
}

/// Why Discord does not let the bot in. Trying again helps only after something was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fatal {
    /// The token is not valid.
    #[error(
        "Discord does not know the token: take a new one from the developer portal (your application → Bot → Reset \
         Token) and set it as KLBR_DISCORD_TOKEN"
    )]
    Token,
    /// An intent that the adapter asks for is not allowed.
    #[error(
        "Discord does not allow an intent: switch on “Message Content Intent” in the developer portal (your application \
         → Bot → Privileged Gateway Intents)"
    )]
    Intents,
    /// The shards do not fit the bot.
    #[error(
        "Discord refuses the shards: {0}; unset KLBR_DISCORD_SHARDS to use as many as Discord recommends"
    )]
    Shards(String),
    /// The gateway does not speak this version of its protocol.
    #[error("Discord's gateway does not take this version of its protocol: {0}; a newer release is needed")]
    Version(String),
    /// Discord refused it in another way.
    #[error("{0}")]
    Refused(String),
}

impl End {
    /// What a close code means.
    pub(super) fn of_close(code: Option<u16>, reason: &str) -> Self {
        let words = match code {
            Some(code) => format!("closed with {code} {reason}"),
            None => "closed without a code".to_owned(),
        };
        match code {
            Some(4004) => End::Fatal(Fatal::Token),
            Some(4010 | 4011) => End::Fatal(Fatal::Shards(words)),
            Some(4012) => End::Fatal(Fatal::Version(words)),
            Some(4013 | 4014) => End::Fatal(Fatal::Intents),
            // The sequence or the session is not known any more.
            Some(4003 | 4007 | 4009) => End::Invalid(words),
            _ => End::Lost(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fatal_codes_say_what_to_change() {
        let fatal = |code| match End::of_close(Some(code), "") {
            End::Fatal(fatal) => fatal.to_string(),
            other => panic!("{code} is not fatal: {other:?}"),
        };
        assert!(fatal(4004).contains("Reset Token"));
        assert!(fatal(4014).contains("Message Content Intent"));
        assert!(fatal(4011).contains("KLBR_DISCORD_SHARDS"));
        assert!(matches!(End::of_close(Some(4009), ""), End::Invalid(_)));
        for lost in [Some(1000), Some(1006), Some(4000), Some(4002), Some(4999), None] {
            assert!(matches!(End::of_close(lost, ""), End::Lost(_)), "{lost:?}");
        }
    }
}
