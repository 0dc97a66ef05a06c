//! Instruction files, stacked.

use klbr_workspace::instructions::{chain, name};

#[track_caller]
fn check(files: &[&str], boundary: &str, start: &str, expected: &[&str]) {
    assert_eq!(chain(boundary, start, |file| files.contains(&file)), expected, "{boundary} {start}");
}

#[test]
fn every_directory_on_the_way_gives_one() {
    let files = ["/AGENTS.md", "/a/AGENTS.md", "/a/CLAUDE.md", "/a/b/CLAUDE.md", "/a/b/c/AGENTS.md"];
    check(&files, "/", "/", &["/AGENTS.md"]);
    check(&files, "/", "/a/b/", &["/AGENTS.md", "/a/AGENTS.md", "/a/b/CLAUDE.md"]);
    check(&files, "/a/../a", "/a/./b/c", &["/a/AGENTS.md", "/a/b/CLAUDE.md", "/a/b/c/AGENTS.md"]);
    check(&files, "/a/b", "/a/b", &["/a/b/CLAUDE.md"]);
    check(&files, "/a", "b", &["/a/AGENTS.md", "/a/b/CLAUDE.md"]);
    check(&files, "/none", "/none/deeper", &[]);
}

#[test]
fn a_start_outside_is_the_boundary() {
    let files = ["/AGENTS.md", "/a/AGENTS.md", "/ab/AGENTS.md"];
    for start in ["/", "/ab", "/a/../ab", "/a"] {
        check(&files, "/a", start, &["/a/AGENTS.md"]);
    }
}

#[test]
fn names_are_relative_to_the_boundary() {
    assert_eq!(name("/app/", "/app/docs//AGENTS.md"), "docs/AGENTS.md");
    assert_eq!(name("/", "/AGENTS.md"), "AGENTS.md");
    assert_eq!(name("/app", "/elsewhere/AGENTS.md"), "/elsewhere/AGENTS.md");
}
