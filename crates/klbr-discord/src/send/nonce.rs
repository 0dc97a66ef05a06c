//! The nonce of a message: the same for every attempt of one part of one effect (`B-DIS-10`).

use klbr_core::ids::{ActionId, AgentName};
use klbr_core::time::Timestamp;
use sha2::{Digest, Sha256};

/// Makes a nonce of 25 characters, as many as Discord takes.
///
/// It is made from what the effect's records hold before its first attempt. The instant tells apart two homes whose
/// agents have one name and whose counters stand at one number.
pub(crate) fn nonce(
    agent: &AgentName,
    instance: &str,
    action: ActionId,
    first: Timestamp,
    part: usize,
) -> String {
    let name = format!("{agent}\n{instance}\n{action}\n{}\n{part}", first.0);
    let digest = Sha256::digest(name.as_bytes());
    let mut nonce = String::from("k");
    for byte in &digest[..12] {
        nonce.push_str(&format!("{byte:02x}"));
    }
    nonce
}

#[cfg(test)]
mod tests {
    use klbr_core::ids::StepId;

    use super::*;

    #[test]
    fn b_dis_10_a_nonce_is_one_for_each_part_of_each_effect_and_short_enough() {
        let agent: AgentName = "ada".parse().unwrap();
        let action = |number| "1.1".parse::<StepId>().unwrap().action(number);
        let one = nonce(&agent, "discord", action(1), Timestamp(5), 0);
        assert_eq!(one, nonce(&agent, "discord", action(1), Timestamp(5), 0));
        assert_eq!(one.chars().count(), 25);
        for other in [
            nonce(&agent, "discord", action(1), Timestamp(5), 1),
            nonce(&agent, "discord", action(2), Timestamp(5), 0),
            nonce(&agent, "discord", action(1), Timestamp(6), 0),
            nonce(&agent, "other", action(1), Timestamp(5), 0),
            nonce(&"bob".parse().unwrap(), "discord", action(1), Timestamp(5), 0),
        ] {
            assert_ne!(one, other);
        }
    }
}
