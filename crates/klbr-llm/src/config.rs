//! Where a model server is and how it is spoken to.
//!
//! Owns parsing and its refusals, which name the setting and never show a secret. Refuses to read the
//! process: settings come from a lookup that is passed in.

use std::fmt;
use std::time::Duration;

use reqwest::Url;

use crate::dialect::Dialect;
use crate::levels::Catalogue;

/// Everything that a [`Provider`](crate::Provider) is built from.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server.
    pub base_url: BaseUrl,
    /// The key that it asks for, if any.
    pub key: Option<Secret>,
    /// What it needs of a transcript.
    pub dialect: Dialect,
    /// How long it may keep silent.
    pub timeouts: Timeouts,
    /// What is known of its models' efforts.
    pub models: Catalogue,
}

/// How long a server may keep silent before a sampling has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection stands.
    pub connect: Duration,
    /// From the request to the first byte of the reply: a local server reads a long prompt in this time.
    pub first_byte: Duration,
    /// Between any two bytes after it.
    pub idle: Duration,
    /// After the finish reason, for servers that keep the connection open without an end marker.
    pub linger: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(120),
            linger: Duration::from_secs(2),
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A value is none of those that its setting takes.
    #[error("{name}: {problem}")]
    Invalid {
        /// The setting.
        name: &'static str,
        /// What is wrong with it; shows the value only where that is no secret.
        problem: String,
    },
    /// A key is set, and no server to use it at.
    #[error("{key} is set, but {base_url} is not: the key's server is not known")]
    NoServer {
        /// The setting that holds the key.
        key: &'static str,
        /// The setting that is missing.
        base_url: &'static str,
    },
    /// The connection's security cannot be set up.
    #[error("no secure connections are possible here: {0}")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The server's address.
pub const BASE_URL: &str = "KLBR_BASE_URL";
/// The key for [`BASE_URL`].
pub const API_KEY: &str = "KLBR_API_KEY";
/// The dialect: `openai`, `alternating` or `mistral`; by default guessed from the address.
pub const DIALECT: &str = "KLBR_DIALECT";
/// [`Timeouts::connect`] in seconds.
pub const CONNECT_TIMEOUT: &str = "KLBR_CONNECT_TIMEOUT_SECS";
/// [`Timeouts::first_byte`] in seconds.
pub const FIRST_BYTE_TIMEOUT: &str = "KLBR_FIRST_BYTE_TIMEOUT_SECS";
/// [`Timeouts::idle`] in seconds.
pub const IDLE_TIMEOUT: &str = "KLBR_IDLE_TIMEOUT_SECS";
/// The server's address, where [`BASE_URL`] is not set.
pub const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";
/// The key for [`OPENAI_BASE_URL`], or for OpenAI itself where no address is set at all.
pub const OPENAI_API_KEY: &str = "OPENAI_API_KEY";

const OPENAI: &str = "https://api.openai.com/v1";

impl Config {
    /// A server that asks for no key, with every default.
    pub fn new(base_url: BaseUrl) -> Self {
        let dialect = Dialect::of_host(base_url.host());
        Config { base_url, key: None, dialect, timeouts: Timeouts::default(), models: Catalogue::default() }
    }

    /// Reads the settings named by this module's constants; `None` when they name no server.
    ///
    /// A blank value counts as unset. A key goes only to the server that it was set for.
    ///
    /// # Errors
    ///
    /// Fails when a setting cannot be used, or [`API_KEY`] is set without [`BASE_URL`].
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, ConfigError> {
        let get =
            |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let own = get(BASE_URL).map(|url| (BASE_URL, url, API_KEY));
        if own.is_none() && get(API_KEY).is_some() {
            return Err(ConfigError::NoServer { key: API_KEY, base_url: BASE_URL });
        }
        let openai = || {
            let url = get(OPENAI_BASE_URL).or_else(|| get(OPENAI_API_KEY).map(|_| OPENAI.to_owned()))?;
            Some((OPENAI_BASE_URL, url, OPENAI_API_KEY))
        };
        let Some((name, url, key_name)) = own.or_else(openai) else { return Ok(None) };
        let mut config = Config::new(BaseUrl::parse_setting(name, &url)?);
        config.key = get(key_name).map(|key| Secret::parse_setting(key_name, key)).transpose()?;
        if let Some(dialect) = get(DIALECT) {
            config.dialect =
                dialect.parse().map_err(|problem| ConfigError::Invalid { name: DIALECT, problem })?;
        }
        for (name, timeout) in [
            (CONNECT_TIMEOUT, &mut config.timeouts.connect),
            (FIRST_BYTE_TIMEOUT, &mut config.timeouts.first_byte),
            (IDLE_TIMEOUT, &mut config.timeouts.idle),
        ] {
            if let Some(value) = get(name) {
                *timeout = parse_seconds(name, &value)?;
            }
        }
        Ok(Some(config))
    }
}

fn parse_seconds(name: &'static str, value: &str) -> Result<Duration, ConfigError> {
    let seconds = value.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        ConfigError::Invalid { name, problem: format!("`{value}` is not a number of seconds above 0") }
    })
}

/// The address under which a server speaks the API, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BaseUrl(Url);

impl BaseUrl {
    /// Parses an address. One without a path gets `/v1`, where servers speak the API.
    ///
    /// # Errors
    ///
    /// Fails for anything but a plain `http` or `https` address: no credentials, query or fragment.
    pub fn parse(address: &str) -> Result<Self, ConfigError> {
        Self::parse_setting("base URL", address)
    }

    fn parse_setting(name: &'static str, address: &str) -> Result<Self, ConfigError> {
        let invalid = |problem: String| ConfigError::Invalid { name, problem };
        let mut url = Url::parse(address.trim())
            .map_err(|error| invalid(format!("`{}` is no address: {error}", without_credentials(address))))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(invalid(format!(
                "`{}` does not begin with http:// or https://",
                without_credentials(address)
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(
                "an address with credentials is not supported: set the key instead".to_owned(),
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(invalid("an address with `?` or `#` is not supported".to_owned()));
        }
        let path = url.path().trim_end_matches('/').trim_end_matches("/chat/completions").to_owned();
        url.set_path(if path.is_empty() { "/v1" } else { &path });
        Ok(BaseUrl(url))
    }

    /// The address as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub(crate) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The address of an endpoint of the API.
    pub(crate) fn endpoint(&self, path: &str) -> Url {
        self.with_path(&format!("{}/{path}", self.0.path()))
    }

    /// The address of something beside the API, on the same server.
    pub(crate) fn beside(&self, path: &str) -> Url {
        let root = self.0.path().trim_end_matches("/v1");
        self.with_path(&format!("{}/{path}", root.trim_end_matches('/')))
    }

    fn with_path(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        url.set_path(path);
        url
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn without_credentials(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, rest)| rest)
}

/// A key. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a key.
    ///
    /// # Errors
    ///
    /// Fails for a key that no header can carry, without showing it.
    pub fn new(key: impl Into<String>) -> Result<Self, ConfigError> {
        Self::parse_setting("key", key.into())
    }

    fn parse_setting(name: &'static str, key: String) -> Result<Self, ConfigError> {
        let key = key.trim().to_owned();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let problem = "the key is empty, or has blanks or characters outside ASCII".to_owned();
            return Err(ConfigError::Invalid { name, problem });
        }
        Ok(Secret(key))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(settings: &[(&str, &str)]) -> Result<Option<Config>, ConfigError> {
        Config::from_lookup(|name| {
            settings.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[track_caller]
    fn check_server(settings: &[(&str, &str)], url: &str, key: Option<&str>) {
        let config = parse(settings).unwrap().unwrap();
        assert_eq!((config.base_url.as_str(), config.key.as_ref().map(Secret::expose)), (url, key));
    }

    #[test]
    fn a_key_goes_only_to_its_own_server() {
        assert!(parse(&[]).unwrap().is_none());
        assert!(parse(&[(BASE_URL, " ")]).unwrap().is_none());
        check_server(&[(BASE_URL, "http://a:1")], "http://a:1/v1", None);
        check_server(&[(BASE_URL, "http://a/x/"), (API_KEY, " k ")], "http://a/x", Some("k"));
        check_server(&[(OPENAI_API_KEY, "k")], "https://api.openai.com/v1", Some("k"));
        check_server(&[(OPENAI_API_KEY, "k"), (OPENAI_BASE_URL, "http://b/v1")], "http://b/v1", Some("k"));
        check_server(
            &[(OPENAI_API_KEY, "k"), (BASE_URL, "http://a/v1/chat/completions")],
            "http://a/v1",
            None,
        );
        assert!(matches!(parse(&[(API_KEY, "k")]), Err(ConfigError::NoServer { .. })));
    }

    #[test]
    fn what_cannot_be_used_is_named_and_no_secret_is_shown() {
        for (name, value) in [
            (BASE_URL, "localhost:8080"),
            (BASE_URL, "ftp://a"),
            (BASE_URL, "http://me:sesame@a"),
            (BASE_URL, "http://me:sesame@"),
            (BASE_URL, "http://a?key=sesame"),
            (API_KEY, "sesame sesame"),
            (DIALECT, "klingon"),
            (IDLE_TIMEOUT, "0"),
            (IDLE_TIMEOUT, "NaN"),
            (FIRST_BYTE_TIMEOUT, "-1"),
            (CONNECT_TIMEOUT, "soon"),
        ] {
            let error = parse(&[(name, value), (BASE_URL, "http://a")]).unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
            assert!(!error.contains("sesame"), "{error}");
        }
        let config = parse(&[(BASE_URL, "http://a"), (API_KEY, "sesame")]).unwrap();
        assert!(!format!("{config:?}").contains("sesame"));
    }

    #[test]
    fn endpoints_stand_in_and_beside_the_api() {
        let url = BaseUrl::parse("http://a:1/v1/").unwrap();
        assert_eq!(url.endpoint("models").as_str(), "http://a:1/v1/models");
        assert_eq!(url.beside("props").as_str(), "http://a:1/props");
        let deep = BaseUrl::parse("https://a/api/v1").unwrap();
        assert_eq!(deep.beside("props").as_str(), "https://a/api/props");
    }
}
