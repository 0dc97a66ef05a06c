//! Full extraction beside ctags, `tree-sitter tags` and `ast-grep outline`, each cold, as its own process, over the same
//! files, interleaved round by round; then the index. What lasts is the ratios: the machine may be busy.
//!
//! `cargo bench -p klbr-codeintel`. Tools that are not on the path are named and left out. `tree-sitter` needs the
//! grammars' sources, which it finds in the local registry.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement says what it measured")]

#[path = "../tests/it/truth/corpus.rs"]
#[allow(dead_code, unreachable_pub, reason = "the tests use more of it")]
mod corpus;

use klbr_codeintel::{Cancel, Extractor, Index, IndexOptions, Query, lookup};
use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

const ROUNDS: usize = 5;
const CORPUS_BYTES: u64 = 6_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("extract") => extract(&arguments[2], arguments[3].parse().unwrap()),
        Some("memory") => memory(Path::new(&arguments[2])),
        _ => {
            let python = corpus::standard_library().map(|library| own_files(&library)).unwrap_or_default();
            let rust: Vec<PathBuf> =
                corpus::crates().iter().flat_map(|root| corpus::files(root, "rs")).collect();
            for (language, files) in [("python", &python), ("rust", &rust)] {
                compare(language, &sample(files));
            }
            if let Some(library) = corpus::standard_library() {
                index(&library);
            }
        }
    }
}

fn own_files(library: &Path) -> Vec<PathBuf> {
    let third_party = library.join("site-packages");
    corpus::files(library, "py").into_iter().filter(|file| !file.starts_with(&third_party)).collect()
}

/// Files spread evenly over the corpus, as many as make the wanted size.
fn sample(files: &[PathBuf]) -> Vec<PathBuf> {
    let total: u64 = files.iter().map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum();
    let step = (total / CORPUS_BYTES).max(1) as usize;
    files.iter().step_by(step).cloned().collect()
}

/// The child: everything that the others tell, printed as they print it, a line a symbol.
fn extract(list: &str, threads: usize) {
    let list = fs::read_to_string(list).unwrap();
    let files: Vec<&str> = list.lines().collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut extractor = Extractor::default();
                let mut out = Vec::new();
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let source = fs::read(file).unwrap();
                    let Ok(extraction) = extractor.extract(Some(file.as_ref()), &source, None) else {
                        continue;
                    };
                    writeln!(out, "{file}").unwrap();
                    for symbol in extraction.symbols {
                        let (path, range) = (symbol.name_path, symbol.name_range);
                        writeln!(
                            out,
                            "  {path}\t{}\t{}:{}",
                            symbol.kind, range.start_line, range.start_column
                        )
                        .unwrap();
                    }
                    std::io::stdout().write_all(&out).unwrap();
                    out.clear();
                }
            });
        }
    });
}

struct Tool {
    name: &'static str,
    command: Box<dyn Fn() -> Command>,
    /// How many times its time on processors klbr's full extraction is to beat.
    bar: Option<f64>,
}

fn tools(list: &Path, tree: &Path, folder: &Path) -> Vec<Tool> {
    let own = std::env::current_exe().unwrap();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let ours = |threads: usize| {
        let (own, list) = (own.clone(), list.to_owned());
        Box::new(move || {
            let mut command = Command::new(&own);
            command.arg("extract").arg(&list).arg(threads.to_string());
            command
        })
    };
    let mut tools: Vec<Tool> = vec![
        Tool { name: "klbr, 1 thread", command: ours(1), bar: None },
        Tool { name: "klbr, all cores", command: ours(cores), bar: None },
    ];
    // The command as it is installed, beside this program; what a user waits for.
    let klbr = own.ancestors().nth(2).map(|release| release.join("klbr")).filter(|klbr| klbr.is_file());
    if klbr.is_none() {
        println!("SKIPPED: cargo build --release -p klbr-cli makes the command that is to be compared");
    }
    for (name, all, klbr) in
        klbr.iter().flat_map(|klbr| [("klbr code --all", true, klbr), ("klbr code", false, klbr)])
    {
        let (klbr, tree) = (klbr.clone(), tree.to_owned());
        tools.push(Tool {
            name,
            command: Box::new(move || {
                let mut command = Command::new(&klbr);
                command.args(["code", "symbols"]).arg(&tree).args(all.then_some("--all"));
                command
            }),
            bar: None,
        });
    }
    if found("ctags") {
        let list = list.to_owned();
        tools.push(Tool {
            name: "ctags",
            command: Box::new(move || {
                let mut command = Command::new("ctags");
                command.args(["-f", "-", "-n", "-L"]).arg(&list);
                command
            }),
            bar: None,
        });
    }
    if let Some(config) = found("tree-sitter").then(|| grammars(folder)).flatten() {
        let list = list.to_owned();
        tools.push(Tool {
            name: "tree-sitter tags",
            command: Box::new(move || {
                let mut command = Command::new("tree-sitter");
                command.arg("tags").arg("--config-path").arg(&config).arg("--paths").arg(&list);
                command
            }),
            bar: Some(2.0),
        });
    }
    if found("ast-grep") {
        let tree = tree.to_owned();
        tools.push(Tool {
            name: "ast-grep outline",
            command: Box::new(move || {
                let mut command = Command::new("ast-grep");
                command.args(["outline", "--items", "all"]).arg(&tree);
                command
            }),
            bar: Some(1.5),
        });
    }
    tools
}

fn found(tool: &str) -> bool {
    let found =
        Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        println!("SKIPPED: no {tool} on the path");
    }
    found
}

/// A configuration that lets `tree-sitter` build its parsers from the registry's sources.
fn grammars(folder: &Path) -> Option<PathBuf> {
    for name in ["tree-sitter-python", "tree-sitter-rust"] {
        let newest = corpus::crates().into_iter().rfind(|path| {
            let found =
                path.file_name().and_then(|found| found.to_str()).and_then(|found| found.strip_prefix(name));
            found.is_some_and(|version| {
                version
                    .strip_prefix('-')
                    .is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
            })
        })?;
        let _ = std::os::unix::fs::symlink(newest, folder.join(name));
    }
    let config = folder.join("config.json");
    fs::write(&config, format!("{{\"parser-directories\": [{folder:?}]}}")).ok()?;
    Some(config)
}

/// One run: the time on the wall, the time on processors (which a busy machine changes less), the bytes printed.
fn time(command: &Command) -> (Duration, Duration, u64) {
    let out = tempfile::tempfile().unwrap();
    let mut timed = Command::new("bash");
    timed
        .args(["-c", "TIMEFORMAT='%U %S'; time \"$@\" 2>/dev/null", "bash"])
        .arg(command.get_program())
        .args(command.get_args());
    let begun = Instant::now();
    let output = timed.stdout(out.try_clone().unwrap()).stderr(Stdio::piped()).output().unwrap();
    let wall = begun.elapsed();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let seconds: f64 = text.split_whitespace().map(|part| part.parse::<f64>().unwrap()).sum();
    (wall, Duration::from_secs_f64(seconds), out.metadata().unwrap().len())
}

fn compare(language: &str, files: &[PathBuf]) {
    let folder = tempfile::tempdir().unwrap();
    let (list, tree) = (folder.path().join("files"), folder.path().join("tree"));
    fs::create_dir(&tree).unwrap();
    // Copies in one folder, since not all of them read lists.
    let copy = |(number, file): (usize, &PathBuf)| {
        let ending = file.extension().unwrap().to_str().unwrap();
        let copy = tree.join(format!("f{number:04}.{ending}"));
        fs::copy(file, &copy).unwrap();
        copy
    };
    let files: Vec<PathBuf> = files.iter().enumerate().map(copy).collect();
    let mut writer = File::create(&list).unwrap();
    files.iter().for_each(|file| writeln!(writer, "{}", file.display()).unwrap());
    let bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    let tools = tools(&list, &tree, folder.path());
    // Once unmeasured: files into the page cache, parsers built.
    let outputs: Vec<u64> = tools.iter().map(|tool| time(&(tool.command)()).2).collect();
    let mut times: Vec<(Vec<Duration>, Vec<Duration>)> = vec![Default::default(); tools.len()];
    for _ in 0..ROUNDS {
        for (tool, (wall, processor)) in tools.iter().zip(&mut times) {
            let (on_wall, on_processor, _) = time(&(tool.command)());
            wall.push(on_wall);
            processor.push(on_processor);
        }
    }
    println!("\n{language}: {} files, {:.1} MB, {ROUNDS} rounds, medians", files.len(), bytes as f64 / 1e6);
    let middle: Vec<[f64; 2]> = times
        .iter_mut()
        .map(|(wall, processor)| [median(wall).as_secs_f64(), median(processor).as_secs_f64()])
        .collect();
    for (tool, (time, output)) in tools.iter().zip(middle.iter().zip(outputs)) {
        println!(
            "  {:<17} {:>6.2} MB/s wall, {:>6.2} MB/s processor | klbr on 1 thread {:.2}x wall, {:.2}x processor; on all cores {:.2}x wall | {:.1} MB printed",
            tool.name,
            bytes as f64 / 1e6 / time[0],
            bytes as f64 / 1e6 / time[1],
            time[0] / middle[0][0],
            time[1] / middle[0][1],
            time[0] / middle[1][0],
            output as f64 / 1e6
        );
        if let Some(bar) = tool.bar {
            println!("  {:<17} {}", "", against(bar, time[1] / middle[0][1]));
        }
    }
}

/// A bar with what was measured beside it.
fn against(bar: f64, measured: f64) -> String {
    let verdict = if measured >= bar { "met" } else { "MISSED" };
    format!("bar: klbr on 1 thread at least {bar}x by processor; measured {measured:.2}x: {verdict}")
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let result = work();
    (result, begun.elapsed())
}

/// The index's own figures: memory, a lookup without one, a question after a change, a look over an unchanged tree.
fn index(library: &Path) {
    println!("\nindex");
    let own = std::env::current_exe().unwrap();
    let output = Command::new(&own).arg("memory").arg(library).output().unwrap();
    print!("{}", String::from_utf8_lossy(&output.stdout));
    let bytes = |root: &Path, ending: &str| -> u64 {
        corpus::files(root, ending).iter().map(|file| file.metadata().map_or(0, |data| data.len())).sum()
    };

    let tree = tempfile::tempdir().unwrap();
    let mut count = 0;
    for round in 0.. {
        for file in own_files(library) {
            if count == 10_000 {
                break;
            }
            let text = fs::read(&file).unwrap();
            if text.len() < 30_000 {
                let folder = tree.path().join(format!("{round}/{}", count / 100));
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join(format!("f{count}.py")), &text[..text.len().min(3000)]).unwrap();
                count += 1;
            }
        }
        if count == 10_000 {
            break;
        }
    }
    let (mut index, _) = Index::build(tree.path(), IndexOptions::default(), &Cancel::new(), &|_| {}).unwrap();
    let mut rechecks: Vec<Duration> = (0..7)
        .map(|_| timed(|| assert_eq!(index.refresh(&Cancel::new(), &|_| {}).unwrap().parsed, 0)).1)
        .collect();
    println!("  re-check of an unchanged tree of {count} files: {:?}", median(&mut rechecks));
    drop(tree);

    let tree = tempfile::tempdir().unwrap();
    let changed = tree.path().join("changed.py");
    fs::write(&changed, "def warm_name(): pass\n").unwrap();
    for (number, file) in own_files(library).iter().enumerate() {
        fs::copy(file, tree.path().join(format!("f{number}.py"))).unwrap();
    }
    let (mut index, _) = Index::build(tree.path(), IndexOptions::default(), &Cancel::new(), &|_| {}).unwrap();
    let query = Query::definitions("warm_name").unwrap();
    let mut warm: Vec<Duration> = (0..21)
        .map(|round| {
            fs::write(&changed, format!("{}def warm_name(): pass\n", "x = 1\n".repeat(round + 1))).unwrap();
            timed(|| {
                index.refresh_paths(std::slice::from_ref(&changed), &Cancel::new(), &|_| {}).unwrap();
                assert_eq!(index.find(&query).hits[0].symbol.name_range.start_line, round + 2);
            })
            .1
        })
        .collect();
    println!(
        "  a question after one file changed, {} files: {:?}",
        own_files(library).len(),
        median(&mut warm)
    );

    let Some(registry) = corpus::crates().first().and_then(|first| first.parent().map(Path::to_owned)) else {
        return;
    };
    let total = bytes(&registry, "rs") as f64 / 1e6;
    for name in ["new", "len", "value", "Some", "String", "JoinHandle", "floor_char_boundary", "no_such_name"]
    {
        // As many finds as the command shows.
        let query = Query { limit: 100, ..Query::definitions(name).unwrap() };
        let options = IndexOptions { obey_ignore_files: false, ..IndexOptions::default() };
        let mut times = Vec::new();
        let (mut hits, mut searched) = (0, 0);
        for _ in 0..3 {
            let (answer, time) = timed(|| lookup(&registry, &options, &query, &Cancel::new()).unwrap());
            (hits, searched) = (answer.hits.len(), answer.searched);
            times.push(time);
        }
        let middle = median(&mut times);
        let for_bar = middle.as_secs_f64() * 125.0 / total;
        let verdict = if for_bar <= 1.0 { "met" } else { "MISSED" };
        println!(
            "  {name} looked up in {total:.0} MB without an index: {middle:?}, {hits} hits in {searched} files; for 125 MB (bar: 1 s): {for_bar:.2} s: {verdict}"
        );
    }
}

/// The child: builds an index and tells what the process came to hold.
fn memory(library: &Path) {
    let (built, time) =
        timed(|| Index::build(library, IndexOptions::default(), &Cancel::new(), &|_| {}).unwrap());
    let (index, report) = built;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| {
        status.lines().find(|line| line.starts_with(name)).unwrap_or_default().replace('\t', " ")
    };
    println!(
        "  built over {} in {time:?}: {} files, {} symbols, {:.1} MB held",
        library.display(),
        report.files,
        report.symbols,
        index.bytes() as f64 / 1e6
    );
    println!("  {}; {}; {}", line("VmHWM"), line("VmRSS"), report.skipped);
}
