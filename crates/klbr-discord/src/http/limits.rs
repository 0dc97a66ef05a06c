//! Discord's rate limits: per route and for everything.
//!
//! Owns every wait for them, so that no request goes out while one is known to be refused. Each wait is visible in
//! the log.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use twilight_http::request::Method;

use super::Failure;

/// What is waited beyond a limit, since two clocks never agree.
const MARGIN: Duration = Duration::from_millis(30);
/// How long is waited when a refusal does not say.
const UNSAID: Duration = Duration::from_secs(1);
/// Buckets that are remembered, at most.
const MOST: usize = 2_048;

#[derive(Debug, Default)]
pub(super) struct Limits(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Nothing goes out before this.
    global: Option<Instant>,
    buckets: HashMap<String, Bucket>,
}

/// What is left of one route's budget until it is filled again.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: u64,
    limit: u64,
    full: Instant,
}

/// What names a route's budget: its method and its path with the major id alone.
pub(super) fn key(method: Method, path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let mut key = format!("{method:?}");
    for (index, part) in path.split('/').enumerate() {
        let is_id = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        key.push('/');
        key.push_str(if is_id && index > 1 { "id" } else { part });
        // The emoji of a reaction shares its budget with every other.
        if part == "reactions" {
            break;
        }
    }
    key
}

impl Limits {
    /// Waits until a request of this key may go out.
    ///
    /// # Errors
    ///
    /// Fails at once when that is after the deadline.
    pub(super) async fn wait(&self, key: &str, deadline: Instant) -> Result<(), Failure> {
        loop {
            let now = Instant::now();
            let Some(free) = self.known().take(key, now) else { return Ok(()) };
            if free > deadline {
                return Err(Failure::Limited(free - now));
            }
            tracing::info!(key, wait = ?(free - now), "waiting for a rate limit of Discord");
            sleep_until(free).await;
        }
    }

    /// Learns a route's budget from an answer.
    pub(super) fn learn(&self, key: &str, headers: &HeaderMap) {
        let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
        let (Some(left), Some(after)) = (number("x-ratelimit-remaining"), number("x-ratelimit-reset-after"))
        else {
            return;
        };
        let after = Duration::try_from_secs_f64(after).unwrap_or_default();
        let bucket = Bucket {
            left: left as u64,
            limit: number("x-ratelimit-limit").map_or(1, |limit| (limit as u64).max(1)),
            full: Instant::now() + after + MARGIN,
        };
        let mut known = self.known();
        // An answer that was overtaken by another one may not give back what that one has used up.
        let older = known.buckets.get(key).copied();
        let is_same =
            older.is_some_and(|older| older.full.max(bucket.full) - older.full.min(bucket.full) < UNSAID / 2);
        let left = older.filter(|_| is_same).map_or(bucket.left, |older| older.left.min(bucket.left));
        known.keep(key, Bucket { left, ..bucket });
    }

    /// Learns from a 429: its own words say how long, and whether for everything.
    pub(super) fn refuse(&self, key: &str, headers: &HeaderMap, body: &Value) {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let seconds = body
            .get("retry_after")
            .and_then(Value::as_f64)
            .or_else(|| header("retry-after")?.trim().parse().ok())
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let after = seconds.unwrap_or(UNSAID);
        let is_global = body.get("global").and_then(Value::as_bool).unwrap_or_default()
            || header("x-ratelimit-global").is_some_and(|value| value.trim() == "true")
            || header("x-ratelimit-scope") == Some("global");
        tracing::warn!(key, ?after, is_global, "Discord's rate limit was reached");
        let until = Instant::now() + after + MARGIN;
        let mut known = self.known();
        if is_global {
            known.global = known.global.max(Some(until));
        } else {
            let limit = known.buckets.get(key).map_or(1, |bucket| bucket.limit);
            known.keep(key, Bucket { left: 0, limit, full: until });
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Uses up one request of a key's budget; answers with when there may be one, if there is none now.
    fn take(&mut self, key: &str, now: Instant) -> Option<Instant> {
        if let Some(global) = self.global.filter(|global| *global > now) {
            return Some(global);
        }
        let bucket = self.buckets.get_mut(key)?;
        if bucket.full <= now {
            bucket.left = bucket.limit;
        }
        if bucket.left == 0 {
            return Some(bucket.full);
        }
        bucket.left -= 1;
        None
    }

    fn keep(&mut self, key: &str, bucket: Bucket) {
        if self.buckets.len() >= MOST {
            let now = Instant::now();
            self.buckets.retain(|_, bucket| bucket.full > now);
        }
        self.buckets.insert(key.to_owned(), bucket);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn one_budget_for_one_route_of_one_channel() {
        assert_eq!(key(Method::Post, "channels/1/messages"), "Post/channels/1/messages");
        assert_eq!(key(Method::Get, "channels/1/messages?after=5"), "Get/channels/1/messages");
        assert_eq!(key(Method::Get, "channels/1/messages/9"), "Get/channels/1/messages/id");
        let reaction = |path| key(Method::Put, path);
        assert_eq!(
            reaction("channels/1/messages/9/reactions/a/@me"),
            reaction("channels/1/messages/8/reactions/b/@me")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn b_dis_10_a_limit_holds_its_own_route_and_a_global_one_holds_all() {
        let limits = Limits::default();
        let (start, far) = (Instant::now(), Instant::now() + Duration::from_secs(60));
        limits.refuse("a", &HeaderMap::new(), &json!({"retry_after": 2.0, "global": false}));
        limits.wait("b", far).await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO);
        limits.wait("a", far).await.unwrap();
        assert!(start.elapsed() >= Duration::from_secs(2) && start.elapsed() < Duration::from_secs(3));
        limits.refuse("a", &headers(&[("retry-after", "5"), ("x-ratelimit-global", "true")]), &Value::Null);
        assert!(matches!(
            limits.wait("b", Instant::now() + Duration::from_secs(1)).await,
            Err(Failure::Limited(_))
        ));
        limits.wait("b", far).await.unwrap();
        assert!(start.elapsed() >= Duration::from_secs(7));
    }

    #[tokio::test(start_paused = true)]
    async fn b_dis_10_a_used_up_budget_is_waited_for_before_it_is_refused() {
        let limits = Limits::default();
        let (start, far) = (Instant::now(), Instant::now() + Duration::from_secs(60));
        limits.learn(
            "a",
            &headers(&[
                ("x-ratelimit-limit", "5"),
                ("x-ratelimit-remaining", "1"),
                ("x-ratelimit-reset-after", "3.5"),
            ]),
        );
        limits.wait("a", far).await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO, "one was left");
        limits.wait("a", far).await.unwrap();
        assert!(start.elapsed() >= Duration::from_millis(3_500));
    }
}
