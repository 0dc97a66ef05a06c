//! Configuration: precedence, keys and secrets, and refusals that say where.

use expect_test::{Expect, expect};
use klbr_discord::settings::EventMode;
use klbr_server::config::ServerChoice;
use klbr_server::{Config, ConfigError, whole_story};
use tempfile::TempDir;

fn load(
    file: &str,
    flags: &[(&str, &str)],
    environment: &[(&str, &str)],
) -> (TempDir, Result<Config, ConfigError>) {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("klbr.toml"), file).unwrap();
    std::fs::write(home.path().join("key"), "from-the-file\n").unwrap();
    let of = |settings: &[(&str, &str)], name: &str| {
        settings.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    };
    let config = Config::load(home.path(), &|name| of(flags, name), &|name| of(environment, name));
    (home, config)
}

fn check_refused(file: &str, environment: &[(&str, &str)], expected: &Expect) {
    let (home, config) = load(file, &[], environment);
    let error = whole_story(&config.unwrap_err());
    expected.assert_eq(&error.replace(&home.path().display().to_string(), "~"));
}

#[test]
fn a_flag_wins_over_the_environment_over_the_file_over_the_default() {
    let file =
        "[agent]\nname = \"file\"\n[model]\nname = \"file\"\neffort = \"file\"\n[tools]\nprocess = true\n";
    let flags = [("KLBR_AGENT", "flag")];
    let (_home, config) = load(
        file,
        &flags,
        &[("KLBR_AGENT", "environment"), ("KLBR_MODEL", "environment"), ("KLBR_EFFORT", " ")],
    );
    let config = config.unwrap();
    let agent = &config.agent;
    assert_eq!(
        (agent.name.as_str(), agent.model.as_deref(), agent.effort.as_deref(), agent.max_output_tokens),
        ("flag", Some("environment"), Some("file"), None)
    );
    assert!(config.process_tool && config.listen.ip().is_loopback());
    assert!(matches!(config.server, ServerChoice::Discover(_)));
    let (_home, none) = load("", &[], &[]);
    assert!(!none.unwrap().process_tool);
}

#[test]
fn an_agent_works_where_a_folder_is_named_and_its_code_is_there_too() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    let of = |file: &str, environment: &[(&str, &str)]| {
        let config = load(file, &[], environment).1.unwrap();
        let below = |path: &std::path::Path| path.strip_prefix(root).unwrap().display().to_string();
        let workspace = config.workspace.map(|it| (below(&it.root), below(&it.start)));
        (workspace, config.code.map(|code| below(&code.root)))
    };
    let at = |path: &str| root.join(path).display().to_string();
    let (a, b) = (at("a"), at("a/b"));
    let pair = |root: &str, start: &str| Some((root.to_owned(), start.to_owned()));
    assert_eq!(of("", &[]), (None, None));
    let workspace = format!("[workspace]\nroot = {a:?}\n");
    assert_eq!(of(&workspace, &[]), (pair("a", "a"), Some("a".into())));
    assert_eq!(of(&format!("{workspace}start = \"b\"\n"), &[]), (pair("a", "a/b"), Some("a".into())));
    assert_eq!(of(&format!("{workspace}[code]\nenabled = false\n"), &[]), (pair("a", "a"), None));
    assert_eq!(of(&format!("{workspace}[code]\nroot = {b:?}\n"), &[]), (pair("a", "a"), Some("a/b".into())));
    assert_eq!(of(&format!("[code]\nroot = {b:?}\n"), &[]), (pair("a/b", "a/b"), Some("a/b".into())));
    let environment = [("KLBR_WORKSPACE_ROOT", &*a), ("KLBR_WORKSPACE_START", "b")];
    assert_eq!(of("", &environment), (pair("a", "a/b"), Some("a".into())));
    check_refused(
        "[workspace]\nroot = \"nowhere\"\n",
        &[],
        &expect!["~/klbr.toml:2: workspace.root: expected a folder, and there is none at ~/nowhere"],
    );
    check_refused(
        "[workspace]\nroot = \".\"\nstart = \"..\"\n",
        &[],
        &expect!["~/klbr.toml:3: workspace.start: ~/./.. is not within ~/."],
    );
    check_refused(
        "[workspace]\nstart = \"a\"\n",
        &[],
        &expect!["~/klbr.toml:2: workspace.start: it is within workspace.root, which is not set"],
    );
}

#[test]
fn code_is_worked_on_where_a_folder_of_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let of = |file: &str, environment: &[(&str, &str)]| load(file, &[], environment).1.unwrap().code;
    assert_eq!(of("[code]\nwrite = true\n", &[]), None);
    let named = of(&format!("[code]\nroot = {root:?}\n"), &[]).unwrap();
    assert_eq!((named.root.as_path(), named.write), (folder.path(), false));
    assert!(of("[code]\nwrite = true\n", &[("KLBR_CODE_ROOT", root)]).unwrap().write);
    assert_eq!(of(&format!("[code]\nroot = {root:?}\nenabled = false\n"), &[]), None);
    check_refused(
        "[code]\nroot = \"nowhere\"\n",
        &[],
        &expect!["~/klbr.toml:2: code.root: expected a folder of code, and there is none at ~/nowhere"],
    );
}

#[test]
fn a_key_goes_to_its_own_server_and_is_never_shown() {
    #[track_caller]
    fn check(file: &str, environment: &[(&str, &str)], url: &str, has_key: bool) {
        let (_home, config) = load(file, &[], environment);
        let config = config.unwrap();
        let debug = format!("{config:?}");
        assert!(!debug.contains("sesame") && !debug.contains("from-the-file"), "{debug}");
        let ServerChoice::At(server) = config.server else { panic!("no server") };
        assert_eq!((server.base_url.as_str(), server.key.is_some()), (url, has_key));
    }
    let file = "[model]\nbase_url = \"http://a/v1\"\napi_key_env = \"MINE\"\n";
    check(file, &[("MINE", "sesame")], "http://a/v1", true);
    check(file, &[("MINE", "sesame"), ("KLBR_BASE_URL", "http://b/v1")], "http://b/v1", false);
    check("[model]\nbase_url = \"http://a/v1\"\napi_key_file = \"key\"\n", &[], "http://a/v1", true);
    check("[model]\nbase_url = \"http://a/v1\"\n", &[("OPENAI_API_KEY", "sesame")], "http://a/v1", false);
    check("", &[("OPENAI_API_KEY", "sesame")], "https://api.openai.com/v1", true);
}

#[test]
fn b_dis_1_discord_comes_from_the_environment_and_the_file() {
    let refused = |file: &str, environment: &[(&str, &str)], expected: Expect| {
        check_refused(file, environment, &expected);
    };
    refused(
        "[discord]\ntoken = \"sesame\"\n",
        &[],
        expect![
            "~/klbr.toml:2: discord.token: a secret is not kept in this file: name its variable with token_env, or its file with token_file"
        ],
    );
    refused(
        "[discord]\nevent_mode = \"loud\"\n",
        &[("DISCORD_TOKEN", "sesame")],
        expect![[r#"~/klbr.toml:2: discord.event_mode: "loud" is neither "all" nor "mentions""#]],
    );
    refused(
        "",
        &[("KLBR_DISCORD_ENABLED", "true")],
        expect!["KLBR_DISCORD_ENABLED: it is true, but KLBR_DISCORD_TOKEN is not set"],
    );
    refused(
        "[discord]\ntoken_env = \"MINE\"\n",
        &[],
        expect!["~/klbr.toml:2: discord.token_env: the variable MINE is not set"],
    );

    let mode = |environment: &[(&str, &str)]| {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("klbr.toml"), "[discord]\nevent_mode = \"all\"\n").unwrap();
        let lookup = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let config = Config::load(home.path(), &|_| None, &lookup).unwrap();
        config.discord.map(|discord| discord.event_mode)
    };
    assert_eq!(mode(&[]), None, "silently off without a token");
    assert_eq!(mode(&[("DISCORD_TOKEN", "sesame"), ("KLBR_DISCORD_ENABLED", "false")]), None);
    assert_eq!(mode(&[("DISCORD_TOKEN", "sesame")]), Some(EventMode::All));
    let empty = [("KLBR_DISCORD_TOKEN", "sesame"), ("KLBR_DISCORD_EVENT_MODE", "")];
    assert_eq!(mode(&empty), Some(EventMode::Mentions), "the empty text means mentions");
}

#[test]
fn what_cannot_be_used_is_refused_with_its_place() {
    check_refused(
        "\n[model]\nnmae = \"x\"\n",
        &[],
        &expect![[r#"~/klbr.toml:3: there is no setting "model.nmae"; did you mean "model.name"?"#]],
    );
    check_refused(
        "[agents]\nname = \"x\"\n",
        &[],
        &expect![[r#"~/klbr.toml:1: there is no setting "agents"; did you mean "agent"?"#]],
    );
    check_refused(
        "[server]\nbase_url = \"x\"\n",
        &[],
        &expect![[r#"~/klbr.toml:2: there is no setting "server.base_url"; did you mean "model.base_url"?"#]],
    );
    check_refused("zzz = 1\n", &[], &expect![[r#"~/klbr.toml:1: there is no setting "zzz""#]]);
    check_refused(
        "[model]\napi_key = \"sesame\"\n",
        &[],
        &expect![
            "~/klbr.toml:2: model.api_key: a secret is not kept in this file: name its variable with api_key_env, or its file with api_key_file"
        ],
    );
    check_refused("[model\n", &[], &expect!["~/klbr.toml:1: unclosed table, expected `]`"]);
    check_refused(
        "[agent]\nname = \"Ada\"\n",
        &[],
        &expect![[
            r#"~/klbr.toml:2: agent.name: "Ada" is not a name of a-z, 0-9, - and _, beginning with a letter"#
        ]],
    );
    check_refused("agent = 1\n", &[], &expect!["~/klbr.toml:1: agent: it is a table: begin it with [agent]"]);
    check_refused(
        "[tools]\nprocess = \"maybe\"\n",
        &[],
        &expect![[r#"~/klbr.toml:2: tools.process: "maybe" is not true or false"#]],
    );
    check_refused(
        "[model]\nbase_url = \"a\"\n",
        &[],
        &expect!["~/klbr.toml:2: model.base_url: `a` is no address: relative URL without a base"],
    );
    check_refused(
        "[model]\nbase_url = \"http://a\"\napi_key_env = \"MINE\"\n",
        &[],
        &expect!["~/klbr.toml:3: model.api_key_env: the variable MINE is not set"],
    );
    check_refused(
        "[model]\nbase_url = \"http://a\"\napi_key_file = \"gone\"\n",
        &[],
        &expect![
            "~/klbr.toml:3: model.api_key_file: ~/gone cannot be read: No such file or directory (os error 2)"
        ],
    );
    check_refused(
        "",
        &[("KLBR_LISTEN", "here")],
        &expect![[r#"KLBR_LISTEN: "here" is not an address like 127.0.0.1:4711"#]],
    );
    check_refused(
        "",
        &[("KLBR_API_KEY", "sesame")],
        &expect!["KLBR_API_KEY is set, but KLBR_BASE_URL is not: the key's server is not known"],
    );
    check_refused(
        "",
        &[("KLBR_PAUSE_AT", "nowhere")],
        &expect![[
            r#"KLBR_PAUSE_AT: "nowhere" is not a point, or point:n; the points are admit-before-commit, admit-before-acknowledge, frame-before-commit, request-before-send, reply-before-commit, reply-after-commit, attempt-before-dispatch, outcome-before-commit, outcome-after-commit, wait-before-commit, wait-after-commit, wait-end-before-commit, turn-end-after-commit, checkpoint-before-write"#
        ]],
    );
}

#[test]
fn python_is_on_when_something_is_said_of_it_and_a_missing_interpreter_is_named() {
    use klbr_server::config::{Python, SelfActivation, Toolset};
    let bin = tempfile::tempdir().unwrap();
    let python3 = bin.path().join("python3");
    std::fs::write(&python3, "").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&python3, executable).unwrap();
    let path = [("PATH", bin.path().to_str().unwrap()), ("TZ", "UTC"), ("KLBR_OTHER", "secret")];
    let of = |file: &str| load(file, &[], &path).1.unwrap().python;
    assert!(matches!(of(""), Python::Unasked(python) if python.interpreter == python3));
    assert!(matches!(of("[python]\n"), Python::Unasked(_)));
    assert_eq!(of("[python]\nenabled = false\nactions = \"both\"\n"), Python::Off);
    let file = "[python]\nactions = \"both\"\nself_activation = \"allow\"\nmemory_mb = 64\nopen_files = 9\n";
    let Python::On(python) = of(file) else { panic!("it is on") };
    assert_eq!((python.interpreter, python.memory, python.files), (python3, 64 << 20, 9));
    assert_eq!((python.actions, python.self_activation), (Toolset::Both, SelfActivation::Allow));
    let names: Vec<&str> = python.environment.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["PATH", "TZ"]);
    check_refused(
        "[python]\ninterpreter = \"bin/none\"\n",
        &[],
        &expect!["~/klbr.toml:2: python.interpreter: there is no interpreter at ~/bin/none"],
    );
    check_refused(
        "[python]\nenabled = true\n",
        &[("PATH", "/nowhere")],
        &expect![
            "~/klbr.toml:2: python.enabled: there is no python3 on PATH (/nowhere): name the interpreter with python.interpreter"
        ],
    );
    check_refused(
        "",
        &[("KLBR_PYTHON", "python9"), ("PATH", "")],
        &expect!["KLBR_PYTHON: there is no python9 on PATH (): name the interpreter with python.interpreter"],
    );
    check_refused(
        "[python]\nactions = \"hands\"\n",
        &path,
        &expect![[r#"~/klbr.toml:2: python.actions: "hands" is not tools, python or both"#]],
    );
    let memory = |mib: &str| format!("[python]\nmemory_mb = {mib}\n");
    let refused = |mib: &str, wanted: &expect_test::Expect| check_refused(&memory(mib), &path, wanted);
    refused(
        "0",
        &expect![[
            r#"~/klbr.toml:2: python.memory_mb: "0" is not a whole number of mebibytes, from 64 to 1048576"#
        ]],
    );
    refused(
        "17592186044416",
        &expect![[
            r#"~/klbr.toml:2: python.memory_mb: "17592186044416" is not a whole number of mebibytes, from 64 to 1048576"#
        ]],
    );
}
