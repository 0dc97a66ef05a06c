//! Manifests: what is refused, with file, line and hint, before anything changes.

use std::time::Duration;

use expect_test::{Expect, expect};
use klbr_core::policy::Slot;
use klbr_pyhost::*;

fn refused(text: &str, expected: Expect) {
    let error = Manifest::parse("policy.toml", text, &Known::default()).unwrap_err();
    expected.assert_eq(&error.to_string());
}

#[test]
fn a_manifest_is_read_whole() {
    let text = r#"
manifest = 1
[instructions]
soul = "You are Ada."
[settings]
language = "en"
[environment]
variables = ["TZ"]
[[hooks]]
slot = "turn.idle"
run = "klbr.policy.attention:idle"
deadline = "100ms"
[[hooks]]
transform = "result.shape"
run = "klbr.policy.social:b"
name = "second"
after = ["first"]
[[hooks]]
transform = "result.shape"
run = "klbr.policy.social:a"
name = "first"
on_failure = "skip"
[[hooks]]
observer = "turn.ended"
run = "klbr.policy.social:heard"
from = 12
"#;
    let manifest = Manifest::parse("policy.toml", text, &Known::default()).unwrap();
    assert_eq!(manifest.soul.as_deref(), Some("You are Ada."));
    let steps = &manifest.transforms()[&Slot::ResultShape];
    let order: Vec<(i64, &str)> = steps.iter().map(|step| (step.order, &*step.run)).collect();
    assert_eq!(order, [(0, "klbr.policy.social:a"), (1, "klbr.policy.social:b")], "as they run");
    assert_eq!(manifest.observers()[0].from, Begin::Seq(12));
    assert_eq!(manifest.slots().len(), 1);
    let bindings: Vec<(Slot, u64)> = manifest.bindings().into_iter().collect();
    assert_eq!(bindings, [(Slot::Idle, 100), (Slot::ResultShape, 2000)], "a family has its steps' time");
    assert!(manifest.environment.contains("TZ"));
    let back: Manifest = serde_json::from_str(&serde_json::to_string(&manifest).unwrap()).unwrap();
    assert_eq!(back, manifest);
}

#[test]
fn unknown_keys() {
    refused(
        "manifest = 1\n[instructions]\nsuol = \"x\"\n",
        expect![[r#"policy.toml:3: unknown field `suol`, expected `soul` (did you mean `soul`?)"#]],
    );
}

#[test]
fn versions_that_are_newer() {
    refused(
        "manifest = 2\nprotocol = 9\n",
        expect![[r#"
        policy.toml:1: this is a manifest of version 2 (this build reads version 1)
        policy.toml:2: it needs protocol 9 (this build speaks 2: update klbr first)"#]],
    );
}

#[test]
fn duplicate_owners_and_unknown_slots() {
    let text = "manifest = 1\n[[hooks]]\nslot = \"turn.idle\"\nrun = \"a:f\"\n[[hooks]]\nslot = \"turn.idle\"\nrun = \"b:g\"\n[[hooks]]\nslot = \"turn.idel\"\nrun = \"c:h\"\n";
    refused(
        text,
        expect![[r#"
        policy.toml:6: b:g would own the slot turn.idle, which a:f owns (line 3) (bind one of them; a transform or observer may also have a `name` of its own)
        policy.toml:9: there is no slot turn.idel (did you mean `turn.idle`?)"#]],
    );
}

#[test]
fn names_that_are_paths() {
    let text = "manifest = 1\n[policy]\ntree = \"../../etc\"\n[[skills]]\nname = \"../up\"\ntree = \"0000000000000000000000000000000000000000000000000000000000000000\"\n[[hooks]]\nslot = \"turn.idle\"\nrun = \"../../evil:f\"\n";
    refused(
        text,
        expect![[r#"
        policy.toml:3: "../../etc" is no hash (64 lowercase hexadecimal digits, as publishing answers with)
        policy.toml:5: "../up" is no name (lowercase letters, digits, - and _, at most 64; a name is never a path)
        policy.toml:9: "../../evil:f" names no function (write `package.module:function`; it is never a path)"#]],
    );
}

#[test]
fn circles() {
    let text = "manifest = 1\n[[hooks]]\ntransform = \"result.shape\"\nname = \"a\"\nrun = \"m:a\"\nafter = [\"b\"]\n[[hooks]]\ntransform = \"result.shape\"\nname = \"b\"\nrun = \"m:b\"\nafter = [\"a\"]\n";
    refused(
        text,
        expect![[
            r#"policy.toml:5: result.shape has a circle: a after b after a (take one `after` out of it)"#
        ]],
    );
}

#[test]
fn deadlines_that_do_not_fit() {
    let text = "manifest = 1\n[[hooks]]\nslot = \"delivery.review\"\nrun = \"m:a\"\ndeadline = \"9s\"\n[[hooks]]\nslot = \"delivery.format\"\nrun = \"m:b\"\ndeadline = \"2s\"\n[[hooks]]\nslot = \"turn.idle\"\nrun = \"m:c\"\ndeadline = \"soon\"\n";
    refused(
        text,
        expect![[r#"
        policy.toml:6: delivery would take 11s at worst (its hooks have 10s altogether: shorten their deadlines)
        policy.toml:13: "soon" is no deadline (write "300ms", "5s" or "1m")"#]],
    );
}

#[test]
fn what_belongs_to_another_kind() {
    let text = "manifest = 1\n[[hooks]]\nslot = \"turn.idle\"\nrun = \"m:a\"\nfrom = \"now\"\n[[hooks]]\nrun = \"m:b\"\n";
    refused(
        text,
        expect![[r#"
        policy.toml:5: this is only for an observer (leave it out)
        policy.toml:6: m:b is bound to nothing, or to several things (name exactly one of slot, transform and observer)"#]],
    );
}

#[test]
fn missing_modules_and_wrong_hashes() {
    let home = tempfile::tempdir().unwrap();
    let source = tempfile::tempdir().unwrap();
    std::fs::write(source.path().join("mine.py"), "def f(q): return True\n").unwrap();
    let trees = Trees::new(home.path());
    let tree = trees.publish(source.path()).unwrap();
    let text = format!(
        "manifest = 1\n[policy]\ntree = \"{tree}\"\n[[hooks]]\nslot = \"turn.idle\"\nrun = \"theirs:f\"\n[[hooks]]\nslot = \"attention.wake\"\nrun = \"mine:f\"\n[[hooks]]\nslot = \"compact.when\"\nrun = \"klbr.worker:main\"\n"
    );
    let manifest = Manifest::parse("policy.toml", &text, &Known::default()).unwrap();
    let error = manifest.check("policy.toml", &trees).unwrap_err();
    let hint = "modules come from the tree that `policy.tree` names, and from `klbr.policy`";
    let expected = format!(
        "policy.toml:4: there is no module theirs ({hint})\npolicy.toml:10: there is no module klbr.worker ({hint})"
    );
    assert_eq!(error.to_string(), expected);

    std::fs::write(trees.path(tree).join("mine.py"), "changed").unwrap();
    let error = manifest.check("policy.toml", &trees).unwrap_err().to_string();
    assert!(error.contains("was changed after it was published"), "{error}");
}

#[test]
fn what_changes_decides_what_restarts() {
    let read =
        |text: &str| Manifest::parse("m", text, &Known { operation: Duration::from_secs(10) }).unwrap();
    let empty = read("manifest = 1\n");
    let soul = read("manifest = 1\n[instructions]\nsoul = \"x\"\n");
    assert_eq!(Vec::from_iter(soul.effect_after(&empty)), [Affected::Prefix]);
    let hook = "[[hooks]]\nslot = \"turn.idle\"\nrun = \"klbr.policy.attention:idle\"\n";
    let hooks = read(&format!("manifest = 1\n{hook}"));
    assert_eq!(Vec::from_iter(hooks.effect_after(&empty)), [Affected::HookWorker]);
    assert!(read(&format!("manifest = 1\n\n\n{hook}")).effect_after(&hooks).is_empty());
}

#[test]
fn a_slot_has_an_owner_or_rewrites_and_only_a_delivery_is_held() {
    let text = "manifest = 1\n[environment]\nvariables = [\"NOT A NAME\"]\n[[hooks]]\nslot = \"delivery.format\"\nrun = \"m:a\"\n[[hooks]]\ntransform = \"delivery.format\"\nrun = \"m:b\"\non_failure = \"hold\"\n[[hooks]]\ntransform = \"frame.render\"\nrun = \"m:c\"\non_failure = \"hold\"\n[[hooks]]\ntransform = \"turn.idle\"\nrun = \"m:d\"\n[[hooks]]\nobserver = \"turn.end\"\nrun = \"m:e\"\n";
    refused(
        text,
        expect![[r#"
        policy.toml:3: "NOT A NAME" names no variable (letters, digits and _; the value is the host's, and is not written here)
        policy.toml:5: m:a would own the slot delivery.format, which the transform m:b rewrites (make it a transform too, or leave the transforms out)
        policy.toml:14: frame.render cannot be held: that would hold the agent (only a delivery is held; write "skip" here)
        policy.toml:16: there is no transform turn.idle (there are frame.render, context.blocks, delivery.format, result.shape)
        policy.toml:19: there is no record turn.end (did you mean `turn.ended`?)"#]],
    );
}
