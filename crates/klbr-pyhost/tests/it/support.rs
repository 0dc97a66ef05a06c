//! A home with a policy in it, a worker over it, and clocks to judge deadlines by.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use klbr_core::event::Priority;
use klbr_core::policy::{Question, Review, Slot};
use klbr_pyhost::*;
use tokio::time::Instant;

/// A long time: nothing that is awaited here takes it, unless it is broken.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(60);

/// The interpreter: `KLBR_PYTHON`, else what `python3` really is. Without one of 3.11 or later the tests are skipped,
/// which they say; where `CI` is set they fail.
pub(crate) fn python() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let named = std::env::var_os("KLBR_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
        let code = "import sys; assert sys.version_info >= (3, 11), sys.version; print(sys.executable)";
        let out = Command::new(named).args(["-I", "-c", code]).output().ok()?;
        out.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()))
    };
    let found = FOUND.get_or_init(find).clone();
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "Python 3.11 or later is needed; name it in KLBR_PYTHON");
        println!("SKIPPED: there is no Python 3.11 or later; name one in KLBR_PYTHON");
    }
    found
}

pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) program: Program,
    pub(crate) changes: Arc<Mutex<Vec<Change>>>,
    pub(crate) records: Arc<Mutex<Vec<Invocation>>>,
    pub(crate) logged: Arc<Mutex<Vec<Logged>>>,
}

/// Keeps what is told of workers.
struct Kept {
    changes: Arc<Mutex<Vec<Change>>>,
    logged: Arc<Mutex<Vec<Logged>>>,
}

impl Watch for Kept {
    fn changed(&self, _: u64, change: Change) {
        self.changes.lock().unwrap().push(change);
    }

    fn logged(&self, _: u64, logged: Logged) {
        self.logged.lock().unwrap().push(logged);
    }
}

/// The bytecode of all tests is cached in one place, as a daemon's is.
fn bytecode() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| std::env::temp_dir().join(format!("klbr-pyhost-tests-{}", Sources.hash()))).clone()
}

impl World {
    pub(crate) fn new() -> Option<Self> {
        let python = python()?;
        let folder = tempfile::tempdir().unwrap();
        let package = Sources.install(&bytecode().join("package")).unwrap();
        let program = Program {
            python,
            package,
            environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("LANG".into(), "C.UTF-8".into())],
            directory: folder.path().to_owned(),
            bytecode: Some(bytecode().join("bytecode")),
            limits: Limits::default(),
        };
        let (changes, records, logged) = (Arc::default(), Arc::default(), Arc::default());
        Some(World { folder, program, changes, records, logged })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn spec(&self, hooks: &[(&str, Kind, &str)]) -> Spec {
        let entry = |(run, kind, name): &(&str, Kind, &str)| Entry {
            run: (*run).into(),
            kind: *kind,
            name: (*name).into(),
        };
        Spec {
            program: self.program.clone(),
            epoch: 1,
            paths: vec![self.path().to_owned()],
            hooks: hooks.iter().map(entry).collect(),
            patience: Patience::default(),
        }
    }

    pub(crate) fn watch(&self) -> Arc<dyn Watch> {
        Arc::new(Kept { changes: Arc::clone(&self.changes), logged: Arc::clone(&self.logged) })
    }

    pub(crate) fn recorder(&self) -> Arc<dyn Recorder> {
        let records = Arc::clone(&self.records);
        Arc::new(move |record| records.lock().unwrap().push(record))
    }

    pub(crate) fn worker(&self, spec: Spec) -> Arc<Worker> {
        Arc::new(Worker::start(spec, Arc::new(NoHost), self.watch()))
    }

    /// A policy in which one function of the module `p` owns a slot.
    pub(crate) fn owner(&self, slot: Slot, code: &str, deadline: Duration) -> HookPolicy {
        self.owner_with(slot, code, deadline, |_| {})
    }

    pub(crate) fn owner_with(
        &self,
        slot: Slot,
        code: &str,
        deadline: Duration,
        change: impl FnOnce(&mut Spec),
    ) -> HookPolicy {
        self.write("p.py", code);
        let mut spec = self.spec(&[("p:f", Kind::Slot, slot.as_str())]);
        change(&mut spec);
        let on_death = if slot.is_required() { OnDeath::Fail } else { OnDeath::AskAgain };
        let binding = SlotBinding { run: "p:f".into(), deadline, on_death };
        HookPolicy::new(self.worker(spec), BTreeMap::from([(slot, binding)]), self.recorder())
    }

    pub(crate) fn record(&self) -> Invocation {
        let records = self.records.lock().unwrap();
        assert_eq!(records.len(), 1, "exactly one record: {records:?}");
        records[0].clone()
    }

    /// Waits until something is among the changes.
    pub(crate) async fn until(&self, what: impl Fn(&Change) -> bool) -> Change {
        observed(|| self.changes.lock().unwrap().iter().find(|change| what(change)).cloned()).await
    }
}

/// Looks every few milliseconds, under a watchdog.
pub(crate) async fn observed<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + WATCHDOG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "it never came");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) async fn ready(policy: &HookPolicy) -> Arc<Loaded> {
    policy.worker().ready(Instant::now() + WATCHDOG).await.unwrap()
}

/// Measures work against a timer of the same length in the same run; answers with how much longer it took.
pub(crate) async fn overrun<T>(deadline: Duration, work: impl Future<Output = T>) -> (T, Duration) {
    let started = Instant::now();
    let timer = async {
        tokio::time::sleep(deadline).await;
        started.elapsed()
    };
    let work = async {
        let done = work.await;
        (done, started.elapsed())
    };
    let (control, (done, took)) = tokio::join!(timer, work);
    (done, took.saturating_sub(control))
}

/// The bar of every failure row.
pub(crate) const OVERRUN: Duration = Duration::from_millis(20);

pub(crate) fn review() -> Review {
    Review {
        action: "1.1.1".parse().unwrap(),
        name: "discord_send".into(),
        arguments: r#"{"content":"hello"}"#.into(),
        hash: "00".into(),
    }
}

pub(crate) fn wake() -> Question {
    Question::Wake { waiting: 1, configured: true }
}

pub(crate) fn delivery() -> Question {
    Question::DeliveryReview(review())
}

pub(crate) fn priority(priority: Priority) -> Question {
    Question::EventPriority {
        event: klbr_core::ids::EventId(1),
        kind: klbr_core::event::SourceKind::Channel,
        instance: "discord".into(),
        priority,
    }
}

/// Whether a process of this id lives.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// A workbench that works in the world's folder.
pub(crate) fn bench(world: &World) -> Bench {
    Bench {
        program: world.program.clone(),
        paths: vec![world.path().to_owned()],
        patience: Patience::default(),
        ladder: Ladder::default(),
        outputs: Some(world.path().to_owned()),
        bounds: Bounds::default(),
    }
}
