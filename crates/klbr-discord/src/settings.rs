//! How the adapter is configured (`B-DIS-1`).
//!
//! Owns the names, the defaults and refusals that name the variable. Refuses to read the process: every setting
//! comes from a lookup that is handed in, or from a [`Section`] of a file.

mod section;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use reqwest::Url;

use crate::id::ChannelId;
pub use section::Section;

/// Whether the adapter runs: unset means on with a token; false means off even with one.
pub const ENABLED: &str = "KLBR_DISCORD_ENABLED";
/// The bot's token.
pub const TOKEN: &str = "KLBR_DISCORD_TOKEN";
/// The bot's token, where [`TOKEN`] is not set.
pub const PLAIN_TOKEN: &str = "DISCORD_TOKEN";
/// `all` when unset; `mentions`, `mention` and the empty text mean mentions.
pub const EVENT_MODE: &str = "KLBR_DISCORD_EVENT_MODE";
/// The source's instance name; `discord` by default.
pub const SOURCE: &str = "KLBR_DISCORD_SOURCE";
/// Whether chatter wakes the agent; true by default.
pub const WAKE_ON_AMBIENT: &str = "KLBR_DISCORD_WAKE_ON_AMBIENT";
/// Whether bots are heard; false by default.
pub const INCLUDE_BOTS: &str = "KLBR_DISCORD_INCLUDE_BOTS";
/// How long chatter is gathered before it is shown, in seconds; 8 by default.
pub const BATCH_SECS: &str = "KLBR_DISCORD_BATCH_SECS";
/// The only channels that are heard, by their ids; all of them when it is empty.
pub const CHANNEL_IDS: &str = "KLBR_DISCORD_CHANNEL_IDS";
/// How long after it was shown an undecided item stays pending, in seconds; 600 by default, 0 for ever.
pub const PENDING_TIMEOUT_SECS: &str = "KLBR_DISCORD_PENDING_TIMEOUT_SECS";
/// Whom messages may ping: any of `users`, `roles`, `everyone`, `replied_user`; nobody by default (`B-DIS-8`).
pub const ALLOWED_MENTIONS: &str = "KLBR_DISCORD_ALLOWED_MENTIONS";
/// Whether it shows that the agent is composing; true by default.
pub const TYPING: &str = "KLBR_DISCORD_TYPING";
/// The address of the REST API, `https://discord.com/api/v10` by default.
pub const API_URL: &str = "KLBR_DISCORD_API_URL";
/// The address of the gateway; what the API names by default.
pub const GATEWAY_URL: &str = "KLBR_DISCORD_GATEWAY_URL";
/// The shards that this process runs, such as `0,1/4`; every shard that Discord recommends by default.
pub const SHARDS: &str = "KLBR_DISCORD_SHARDS";
/// How long a nonce is trusted to prevent a second message, in seconds; 120 by default (`C-EFF-5`).
pub const NONCE_SECS: &str = "KLBR_DISCORD_NONCE_SECS";

/// The keys of the file's section `discord`, and the names of the same settings in the environment.
pub const KEYS: &[(&str, &str)] = &[
    ("enabled", ENABLED),
    ("event_mode", EVENT_MODE),
    ("source", SOURCE),
    ("wake_on_ambient", WAKE_ON_AMBIENT),
    ("include_bots", INCLUDE_BOTS),
    ("batch_secs", BATCH_SECS),
    ("channel_ids", CHANNEL_IDS),
    ("pending_timeout_secs", PENDING_TIMEOUT_SECS),
    ("allowed_mentions", ALLOWED_MENTIONS),
    ("typing", TYPING),
    ("api_url", API_URL),
    ("gateway_url", GATEWAY_URL),
    ("shards", SHARDS),
    ("nonce_secs", NONCE_SECS),
];

const DISCORD_API: &str = "https://discord.com/api/v10";

/// Everything that the adapter is told. Debug output shows no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The bot's token.
    pub token: Token,
    /// What is heard beside direct messages, mentions and listed channels.
    pub event_mode: EventMode,
    /// The instance name of the source and of the channel.
    pub source: String,
    /// Whether chatter wakes the agent.
    pub wake_on_ambient: bool,
    /// Whether bots are heard.
    pub include_bots: bool,
    /// How long chatter is gathered before it is shown.
    pub batch: Duration,
    /// The only channels that are heard; all of them when it is empty.
    pub channels: BTreeSet<ChannelId>,
    /// How long after it was shown an undecided item stays pending; for ever when it is none.
    pub pending_timeout: Option<Duration>,
    /// Whom messages may ping.
    pub allowed_mentions: AllowedMentions,
    /// Whether it shows that the agent is composing.
    pub typing: bool,
    /// The address of the REST API, without a slash at its end.
    pub api_url: String,
    /// The address of the gateway, without a slash at its end; what the API names when it is none.
    pub gateway_url: Option<String>,
    /// The shards that this process runs; every one that Discord recommends when it is none.
    pub shards: Option<Shards>,
    /// How long a nonce is trusted to prevent a second message.
    pub nonce_window: Duration,
}

/// What is heard beside direct messages, mentions and listed channels (`B-DIS-2`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventMode {
    /// Everything.
    All,
    /// Nothing.
    Mentions,
}

/// Whom a message of the agent may ping; by default nobody (`B-DIS-8`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllowedMentions {
    /// The users that it mentions.
    pub users: bool,
    /// The roles that it mentions.
    pub roles: bool,
    /// `@everyone` and `@here`.
    pub everyone: bool,
    /// The author of the message that it replies to.
    pub replied_user: bool,
}

/// The shards that a process runs, of how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    /// Their numbers, each below `total`.
    pub numbers: Vec<u32>,
    /// How many shards the bot has altogether.
    pub total: u32,
}

/// A bot's token. Debug output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Takes a token, with or without `Bot ` before it.
    ///
    /// # Errors
    ///
    /// Fails for a token that no header can carry, without showing it.
    pub fn new(token: &str) -> Result<Self, SettingsError> {
        let bare = token.trim();
        let bare = bare.strip_prefix("Bot ").unwrap_or(bare).trim();
        if bare.is_empty() || !bare.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SettingsError::new(
                TOKEN,
                "the token is empty, or has blanks or characters outside ASCII",
            ));
        }
        Ok(Token(bare.to_owned()))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {problem}")]
pub struct SettingsError {
    /// The variable.
    pub name: &'static str,
    /// What is wrong; shows the value only where that is no secret.
    pub problem: String,
}

impl SettingsError {
    fn new(name: &'static str, problem: impl Into<String>) -> Self {
        SettingsError { name, problem: problem.into() }
    }
}

impl Settings {
    /// A bot with this token, with every default.
    pub fn new(token: Token) -> Self {
        Settings {
            token,
            event_mode: EventMode::All,
            source: "discord".to_owned(),
            wake_on_ambient: true,
            include_bots: false,
            batch: Duration::from_secs(8),
            channels: BTreeSet::new(),
            pending_timeout: Some(Duration::from_secs(600)),
            allowed_mentions: AllowedMentions::default(),
            typing: true,
            api_url: DISCORD_API.to_owned(),
            gateway_url: None,
            shards: None,
            nonce_window: Duration::from_secs(120),
        }
    }

    /// Reads the settings named by this module's constants; `None` when the adapter is off (`B-DIS-1`).
    ///
    /// A blank value counts as unset, but for [`EVENT_MODE`], where the empty text means mentions. With no token and
    /// no [`ENABLED`], nothing else is looked at.
    ///
    /// # Errors
    ///
    /// Fails when it is enabled without a token, or when a setting cannot be used; the error names the variable.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingsError> {
        let get =
            |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let truth = |name: &'static str| get(name).map(|value| parse_truth(name, &value)).transpose();
        let enabled = truth(ENABLED)?;
        if enabled == Some(false) {
            return Ok(None);
        }
        let Some(token) = get(TOKEN).or_else(|| get(PLAIN_TOKEN)) else {
            return match enabled {
                Some(_) => Err(SettingsError::new(ENABLED, format!("it is true, but {TOKEN} is not set"))),
                None => Ok(None),
            };
        };
        let mut settings = Settings::new(Token::new(&token)?);
        if let Some(mode) = lookup(EVENT_MODE) {
            settings.event_mode = parse_mode(&mode)?;
        }
        if let Some(source) = get(SOURCE) {
            settings.source = source;
        }
        for (name, slot) in [
            (WAKE_ON_AMBIENT, &mut settings.wake_on_ambient),
            (INCLUDE_BOTS, &mut settings.include_bots),
            (TYPING, &mut settings.typing),
        ] {
            if let Some(value) = truth(name)? {
                *slot = value;
            }
        }
        if let Some(value) = get(BATCH_SECS) {
            settings.batch = parse_seconds(BATCH_SECS, &value)?;
        }
        if let Some(value) = get(NONCE_SECS) {
            settings.nonce_window = parse_seconds(NONCE_SECS, &value)?;
        }
        if let Some(value) = get(PENDING_TIMEOUT_SECS) {
            let timeout = parse_seconds(PENDING_TIMEOUT_SECS, &value)?;
            settings.pending_timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
        }
        if let Some(value) = get(CHANNEL_IDS) {
            settings.channels = items(&value).map(parse_channel).collect::<Result<_, _>>()?;
        }
        if let Some(value) = get(ALLOWED_MENTIONS) {
            settings.allowed_mentions = parse_mentions(&value)?;
        }
        if let Some(value) = get(API_URL) {
            settings.api_url = parse_url(API_URL, &value, ["http", "https"])?;
        }
        if let Some(value) = get(GATEWAY_URL) {
            settings.gateway_url = Some(parse_url(GATEWAY_URL, &value, ["ws", "wss"])?);
        }
        if let Some(value) = get(SHARDS) {
            settings.shards = Some(parse_shards(&value)?);
        }
        Ok(Some(settings))
    }
}

fn items(value: &str) -> impl Iterator<Item = &str> {
    value.split([',', ' ', ';', '\n']).map(str::trim).filter(|item| !item.is_empty())
}

fn parse_truth(name: &'static str, value: &str) -> Result<bool, SettingsError> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(SettingsError::new(name, format!("{value:?} is neither true nor false"))),
    }
}

fn parse_mode(value: &str) -> Result<EventMode, SettingsError> {
    match value.trim().to_ascii_lowercase().as_str() {
        "all" => Ok(EventMode::All),
        "mentions" | "mention" | "" => Ok(EventMode::Mentions),
        _ => Err(SettingsError::new(EVENT_MODE, format!("{value:?} is neither \"all\" nor \"mentions\""))),
    }
}

fn parse_seconds(name: &'static str, value: &str) -> Result<Duration, SettingsError> {
    let seconds = value.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| SettingsError::new(name, format!("{value:?} is not a number of seconds")))
}

fn parse_channel(value: &str) -> Result<ChannelId, SettingsError> {
    value.parse().map_err(|_| SettingsError::new(CHANNEL_IDS, format!("{value:?} is not a channel's id")))
}

fn parse_mentions(value: &str) -> Result<AllowedMentions, SettingsError> {
    let mut allowed = AllowedMentions::default();
    for item in items(value) {
        match item {
            "users" => allowed.users = true,
            "roles" => allowed.roles = true,
            "everyone" => allowed.everyone = true,
            "replied_user" => allowed.replied_user = true,
            "none" => {}
            _ => {
                let problem = format!("{item:?} is none of users, roles, everyone, replied_user, none");
                return Err(SettingsError::new(ALLOWED_MENTIONS, problem));
            }
        }
    }
    Ok(allowed)
}

fn parse_url(name: &'static str, value: &str, schemes: [&str; 2]) -> Result<String, SettingsError> {
    let refused = |problem: String| SettingsError::new(name, problem);
    let url = Url::parse(value).map_err(|error| refused(format!("{value:?} is no address: {error}")))?;
    if !schemes.contains(&url.scheme()) || !url.has_host() {
        return Err(refused(format!("{value:?} does not begin with {}:// or {}://", schemes[0], schemes[1])));
    }
    if !url.username().is_empty()
        || url.password().is_some()
        || url.query().is_some()
        || url.fragment().is_some()
    {
        return Err(refused("an address with credentials, `?` or `#` is not supported".to_owned()));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn parse_shards(value: &str) -> Result<Shards, SettingsError> {
    let refused =
        || SettingsError::new(SHARDS, format!("{value:?} is not like `0,1/4`: numbers, and of how many"));
    let (numbers, total) = value.split_once('/').ok_or_else(refused)?;
    let total: u32 = total.trim().parse().map_err(|_| refused())?;
    let numbers: Vec<u32> =
        items(numbers).map(|item| item.parse().map_err(|_| refused())).collect::<Result<_, _>>()?;
    if numbers.is_empty() || numbers.iter().any(|number| *number >= total) {
        return Err(refused());
    }
    Ok(Shards { numbers, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(settings: &[(&str, &str)]) -> Result<Option<Settings>, SettingsError> {
        Settings::from_lookup(|name| {
            settings.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn parsed(settings: &[(&str, &str)]) -> Settings {
        let mut with_token = vec![(TOKEN, "abc.def")];
        with_token.extend_from_slice(settings);
        parse(&with_token).unwrap().unwrap()
    }

    /// The variable that a refusal names.
    fn refused(settings: &[(&str, &str)]) -> &'static str {
        let mut with_token = vec![(TOKEN, "abc.def")];
        with_token.extend_from_slice(settings);
        parse(&with_token).unwrap_err().name
    }

    #[test]
    fn b_dis_1_it_is_on_with_a_token_and_silently_off_without() {
        assert_eq!(parse(&[]), Ok(None));
        assert_eq!(parse(&[(TOKEN, "  ")]), Ok(None));
        assert!(parse(&[(PLAIN_TOKEN, "abc")]).unwrap().is_some());
        assert_eq!(parse(&[(ENABLED, "false"), (TOKEN, "abc")]), Ok(None));
        assert_eq!(parse(&[(ENABLED, "true")]).unwrap_err().name, ENABLED);
        let both = parse(&[(TOKEN, "own"), (PLAIN_TOKEN, "other")]).unwrap().unwrap();
        assert_eq!(both.token.expose(), "own");
    }

    #[test]
    fn b_dis_1_the_defaults_are_the_kept_ones() {
        let settings = parsed(&[]);
        assert_eq!(settings, Settings::new(Token::new("abc.def").unwrap()));
        assert_eq!(settings.event_mode, EventMode::All);
        assert_eq!(settings.source, "discord");
        assert!(settings.wake_on_ambient && !settings.include_bots && settings.channels.is_empty());
        assert_eq!((settings.batch.as_secs(), settings.pending_timeout.unwrap().as_secs()), (8, 600));
        assert_eq!(settings.allowed_mentions, AllowedMentions::default());
    }

    #[test]
    fn b_dis_1_the_event_mode_has_its_spellings() {
        for mentions in ["mentions", "mention", "", "MENTIONS", "Mention"] {
            assert_eq!(parsed(&[(EVENT_MODE, mentions)]).event_mode, EventMode::Mentions, "{mentions:?}");
        }
        assert_eq!(parsed(&[(EVENT_MODE, "ALL")]).event_mode, EventMode::All);
        assert_eq!(refused(&[(EVENT_MODE, "some")]), EVENT_MODE);
    }

    #[test]
    fn b_dis_1_what_cannot_be_used_names_its_variable() {
        for (name, value) in [
            (ENABLED, "perhaps"),
            (WAKE_ON_AMBIENT, "2"),
            (INCLUDE_BOTS, "maybe"),
            (BATCH_SECS, "-1"),
            (BATCH_SECS, "NaN"),
            (PENDING_TIMEOUT_SECS, "soon"),
            (CHANNEL_IDS, "123, general"),
            (CHANNEL_IDS, "0"),
            (ALLOWED_MENTIONS, "here"),
            (API_URL, "discord.com"),
            (API_URL, "https://user:pw@discord.com/api"),
            (GATEWAY_URL, "http://localhost"),
            (SHARDS, "4/4"),
            (NONCE_SECS, "∞"),
        ] {
            assert_eq!(refused(&[(name, value)]), name, "{value}");
        }
        let secret = Token::new("not a token").unwrap_err();
        assert_eq!(secret.name, TOKEN);
        assert!(!secret.to_string().contains("not a token"));
        assert_eq!(format!("{:?}", Token::new("abc").unwrap()), "Token(…)");
    }

    #[test]
    fn lists_addresses_and_shards_are_read() {
        let settings = parsed(&[
            (CHANNEL_IDS, "12, 34 56"),
            (PENDING_TIMEOUT_SECS, "0"),
            (ALLOWED_MENTIONS, "users,replied_user"),
            (API_URL, "http://127.0.0.1:9/api/v10/"),
            (GATEWAY_URL, "ws://127.0.0.1:9"),
            (SHARDS, "0,2/4"),
        ]);
        assert_eq!(settings.channels.len(), 3);
        assert_eq!(settings.pending_timeout, None);
        assert!(settings.allowed_mentions.users && !settings.allowed_mentions.everyone);
        assert_eq!(settings.api_url, "http://127.0.0.1:9/api/v10");
        assert_eq!(settings.gateway_url.as_deref(), Some("ws://127.0.0.1:9"));
        assert_eq!(settings.shards, Some(Shards { numbers: vec![0, 2], total: 4 }));
    }
}
