//! Where an agent works, as it is told, and what a path that it writes means.
//!
//! Owns paths as texts: `/`-separated, resolved by their text alone. Refuses to look anything up: links and
//! permissions are the business of whoever opens a file.

/// Resolves a path by its text: a relative one against a base, `.` and `..` taken out, `..` at the root staying
/// there, repeated and trailing `/` dropped.
///
/// ```
/// use klbr_core::context::paths::resolve;
///
/// assert_eq!(resolve("/home/ada/app", "./docs//guide.md"), "/home/ada/app/docs/guide.md");
/// assert_eq!(resolve("/home/ada/app", "../lib/"), "/home/ada/lib");
/// assert_eq!(resolve("/home/ada/app", "/etc/../../x"), "/x");
/// ```
pub fn resolve(base: &str, path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let base = if path.starts_with('/') { "" } else { base };
    for name in base.split('/').chain(path.split('/')) {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// The lines of the environment that say where the agent works; none names an absolute path.
pub fn env_lines(root: &str, started: &str) -> Vec<String> {
    let root = resolve("/", root);
    let name = root.rsplit('/').find(|name| !name.is_empty()).unwrap_or("/");
    let mut lines = vec![format!("Project: {name} (paths are relative to its root)")];
    match below(&root, &resolve("/", started)) {
        Some(path) if !path.is_empty() => {
            lines.push(format!("Started in: {path} (relative to the project root)"));
        }
        _ => {}
    }
    lines
}

/// The name of a file in a prompt: relative to the root, else under the home directory as `~/…`, else absolute.
pub fn prompt_name(root: &str, home: Option<&str>, file: &str) -> String {
    let file = resolve(root, file);
    if let Some(path) = below(&resolve("/", root), &file) {
        return if path.is_empty() { ".".to_owned() } else { path.to_owned() };
    }
    match home.and_then(|home| below(&resolve("/", home), &file).map(str::to_owned)) {
        Some(path) if path.is_empty() => "~".to_owned(),
        Some(path) => format!("~/{path}"),
        None => file,
    }
}

/// A resolved path relative to a resolved directory that it lies in; empty when it is the directory.
pub fn below<'p>(directory: &str, path: &'p str) -> Option<&'p str> {
    let rest = path.strip_prefix(directory.strip_suffix('/').unwrap_or(directory))?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}
