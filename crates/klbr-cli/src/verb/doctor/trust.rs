//! Which guarantees of trust hold on this machine (`C-TRUST`).

use klbr_server::config::Config;

use super::Finding;

/// Says what holds, and what does not.
pub(super) fn look(config: &Config) -> Vec<Finding> {
    let token = Finding::good(
        "trust",
        "operator is whoever can read the token; processes of the agent are not given it",
    );
    let shell = match config.process_tool {
        false => {
            Finding::good("trust", "the agent starts no processes: its approvals are as safe as the token")
        }
        true => Finding::note(
            "trust",
            "the agent may run commands with your rights, so that these could read the token and approve for you: \
             approvals are only as safe as its commands",
            "set tools.process = false, or let the daemon run as a user of its own",
        ),
    };
    let local = match (config.listen.ip().is_loopback(), config.allow_remote) {
        (true, _) => {
            Finding::good("trust", format!("the API listens on this machine alone ({})", config.listen))
        }
        (false, true) => Finding::note(
            "trust",
            format!(
                "the API listens on {} without encryption: the token crosses the network in the clear",
                config.listen
            ),
            "listen on 127.0.0.1 and use an encrypted tunnel",
        ),
        (false, false) => Finding::bad(
            "trust",
            format!("{} is not of this machine alone", config.listen),
            "set server.listen to 127.0.0.1:0, or server.allow_remote = true if you mean it",
        ),
    };
    vec![token, shell, local]
}
