//! What a check finds, and what it says to enable (B-DIS-1).

use klbr_discord::{Severity, check, settings::Token};
use klbr_tests::discord_double::Overwrite;
use serde_json::json;

use super::super::discord::Scene;
use super::settings;

#[tokio::test]
async fn a_bot_that_may_do_everything_is_good() {
    let scene = Scene::new().await;
    let mut settings = settings(&scene);
    settings.channels = [scene.channel.to_string().parse().unwrap()].into();
    let report = check(&settings).await;
    assert_eq!(report.worst(), Severity::Good, "{report:#?}");
    assert_eq!(scene.control().summary().await.unwrap().connects, 0, "no session is used up");
}

#[tokio::test]
async fn each_fault_says_what_to_enable_where() {
    let scene = Scene::new().await;
    let secret = scene.control().channel(scene.guild, "secret").await.unwrap();
    let quiet = scene.control().channel(scene.guild, "quiet").await.unwrap();
    let deny = |channel, deny| {
        let overwrite = Overwrite { id: scene.bot(), is_member: true, allow: 0, deny };
        scene.control().overwrite(channel, overwrite)
    };
    deny(secret, 1 << 10).await.unwrap();
    deny(quiet, 1 << 11 | 1 << 6).await.unwrap();
    scene.control().set(json!({"application_flags": 0})).await.unwrap();
    let mut settings = settings(&scene);
    settings.channels = [secret, quiet].iter().map(|id| id.to_string().parse().unwrap()).collect();
    settings.channels.insert("77".parse().unwrap());
    let report = check(&settings).await;
    let errors: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| format!("{} → {}", finding.what, finding.advice.as_deref().unwrap()))
        .collect();
    let has = |words: &[&str]| errors.iter().any(|error| words.iter().all(|word| error.contains(word)));
    assert!(has(&["message content is not allowed", "Message Content Intent"]), "{errors:#?}");
    assert!(has(&["channel 77", "Copy Channel ID"]), "{errors:#?}");
    assert!(has(&[&secret.to_string(), "View Channel"]), "{errors:#?}");
    assert!(has(&["quiet", "Send Messages, Add Reactions"]), "{errors:#?}");
    assert_eq!(errors.len(), 4, "{errors:#?}");

    settings.token = Token::new("another").unwrap();
    let report = check(&settings).await;
    assert_eq!(report.findings.len(), 1);
    assert!(report.findings[0].advice.as_ref().unwrap().contains("Reset Token"));
}
