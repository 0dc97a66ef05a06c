//! The database file: how it is opened, brought up to date, and what is done when it is damaged.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use klbr_core::time::Timestamp;
use rusqlite::{Connection, OpenFlags};

use crate::error::is_damage;
use crate::options::{Access, Durability, Options};

/// "klbr", so that a foreign database is told from one of ours.
const APPLICATION: i32 = 0x6B6C_6272;
/// How long a connection waits for another process.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest file that is read through after a kill; beyond it that would take seconds.
const CHECKED: u64 = 256 << 20;

/// The scripts that make a database, in order; the schema's version is how many of them have run.
pub(crate) const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// A store that could not be opened. Nothing was lost: what was there is still there, where the error says.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file is damaged. It was set aside, with what belongs to it, and nothing has taken its place.
    #[error("{} is damaged ({what}); it was set aside as {}", path.display(), aside.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where it is now.
        aside: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The file is damaged. It was only to be read, and is where it was.
    #[error("{} is damaged ({what})", path.display())]
    Unsound {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// There is no store, but one was set aside here, damaged or being replaced: an empty one must not take its
    /// place unasked.
    #[error(
        "{} is missing and {} was set aside: restore a backup, or move that file away to begin anew",
        path.display(),
        aside.display()
    )]
    SetAside {
        /// The file that is missing.
        path: PathBuf,
        /// The one that was set aside.
        aside: PathBuf,
    },
    /// A newer release has written it.
    #[error(
        "{} has schema {found}, this release knows up to {known}: use the newer release, or restore a backup",
        path.display()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its schema's number.
        found: u32,
        /// The newest number known here.
        known: u32,
    },
    /// An older release has written it, and it is to be read only.
    #[error(
        "{} has schema {found} of an older release: open it for writing once, to bring it up to date",
        path.display()
    )]
    TooOld {
        /// The file.
        path: PathBuf,
        /// Its schema's number.
        found: u32,
    },
    /// It is a database, but not one of klbr.
    #[error("{} is a database of another program", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A migration failed; the database is as it was.
    #[error("{} could not be brought to schema {to}: it is as it was", path.display())]
    Migration {
        /// The file.
        path: PathBuf,
        /// The number of the migration.
        to: u32,
        /// What SQLite says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It cannot be reached: missing, no permission, a full disk, locked by another process.
    #[error("{} could not be opened", path.display())]
    Unavailable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Opens the connection that owns the file, checked and up to date.
pub(crate) fn open(path: &Path, options: Options, migrations: &[&str]) -> Result<Connection, OpenError> {
    if options.access == Access::Write
        && !path.exists()
        && let Some(aside) = find_aside(path)
    {
        return Err(OpenError::SetAside { path: path.into(), aside });
    }
    let opened = connect(path, options.access).and_then(|conn| {
        if options.access == Access::Write && was_not_closed(path) {
            quick_check(&conn)?;
        }
        let application: i32 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let version: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((conn, application, version, tables))
    });
    let (mut conn, application, version, tables) = match opened {
        Ok(opened) => opened,
        Err(error) if is_damage(&error) => {
            let what = error.to_string();
            return Err(match options.access {
                Access::Write => set_aside(path, what),
                Access::Read => OpenError::Unsound { path: path.into(), what },
            });
        }
        Err(error) => return Err(unavailable(path, error)),
    };
    if application != APPLICATION && (tables > 0 || options.access == Access::Read) {
        return Err(OpenError::Foreign { path: path.into() });
    }
    let known = migrations.len() as u32;
    if version > known {
        return Err(OpenError::TooNew { path: path.into(), found: version, known });
    }
    match options.access {
        Access::Read if version < known => Err(OpenError::TooOld { path: path.into(), found: version }),
        Access::Read => Ok(conn),
        Access::Write => {
            migrate(path, &mut conn, version, migrations)?;
            prepare(&conn, options.durability).map_err(|error| unavailable(path, error))?;
            Ok(conn)
        }
    }
}

/// A further connection that may write to a file that [`open`] has opened.
pub(crate) fn connect_beside(path: &Path, durability: Durability) -> rusqlite::Result<Connection> {
    let conn = connect(path, Access::Write)?;
    prepare(&conn, durability)?;
    Ok(conn)
}

/// Puts the whole database `fresh` in the place of the one at `path`; answers with where that is now.
pub(crate) fn replace(fresh: &Path, path: &Path) -> std::io::Result<Option<PathBuf>> {
    if path.exists() {
        // A database whose log is empty is one file, and cannot be torn by what follows. One that is too damaged
        // for that is moved with its log as it is.
        let emptied = connect(path, Access::Write)
            .and_then(|conn| conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        if let Err(error) = emptied {
            tracing::warn!(%error, "the log of the store that is replaced could not be emptied");
        }
    }
    let replaced = move_aside(path, REPLACED)?;
    std::fs::rename(fresh, path)?;
    sync_file(path)?;
    Ok(replaced)
}

/// A further connection to a file that [`open`] has opened.
pub(crate) fn connect(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let access = match access {
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(PATIENCE)?;
    conn.set_prepared_statement_cache_capacity(64);
    // A page is read before anything else, so that what is no database says so here.
    conn.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
    Ok(conn)
}

fn prepare(conn: &Connection, durability: Durability) -> rusqlite::Result<()> {
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
            Some(format!("the file system allows no write-ahead log (journal mode {mode})")),
        ));
    }
    conn.execute_batch(match durability {
        // On macOS only a full fsync reaches the medium.
        Durability::PowerCut => {
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;"
        }
        Durability::ProcessEnd => "PRAGMA synchronous = OFF;",
    })?;
    // The log is copied by a thread of its own, not within commits.
    conn.execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -4096;")
}

fn migrate(path: &Path, conn: &mut Connection, version: u32, migrations: &[&str]) -> Result<(), OpenError> {
    let known = migrations.len() as u32;
    if version > 0 && version < known {
        let copy = beside(path, &format!("schema-{version}"));
        copy_to(conn, &copy).map_err(|error| unavailable(&copy, error))?;
        tracing::info!(copy = %copy.display(), "the database was copied before it is migrated");
    }
    for (to, script) in (1..).zip(migrations).skip(version as usize) {
        let ran = conn.transaction().and_then(|transaction| {
            transaction.execute_batch(script)?;
            transaction.pragma_update(None, "user_version", to)?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.commit()
        });
        ran.map_err(|error| OpenError::Migration { path: path.into(), to, source: Box::new(error) })?;
    }
    Ok(())
}

/// Copies a database as one consistent whole to a file that does not exist yet, and syncs it.
pub(crate) fn copy_to(conn: &Connection, to: &Path) -> rusqlite::Result<()> {
    let name = to.to_str().ok_or_else(|| rusqlite::Error::InvalidPath(to.into()))?;
    conn.execute("VACUUM INTO ?1", [name])?;
    // The copy is the fallback of what comes next: it has to be on the medium before that.
    sync_file(to).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// Syncs a file and the directory that names it.
pub(crate) fn sync_file(path: &Path) -> std::io::Result<()> {
    std::fs::File::open(path)?.sync_all()?;
    sync_directory(path)
}

fn sync_directory(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Ok(()),
        Some(parent) => std::fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

fn quick_check(conn: &Connection) -> rusqlite::Result<()> {
    let found: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), Some(found)))
}

/// Whether the last process was killed, and the file is small enough to be read through before it is used.
fn was_not_closed(path: &Path) -> bool {
    let len = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    len(&log_of(path)) > 0 && len(path) <= CHECKED
}

/// The write-ahead log of a database.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    with_suffix(path, "-wal")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A name beside the database that says what it is and when it was made, and is not taken.
pub(crate) fn beside(path: &Path, what: &str) -> PathBuf {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let stamp = Timestamp(i64::try_from(millis).unwrap_or(0)).to_string().replace([':', '-'], "");
    let mut name = with_suffix(path, &format!(".{what}-{stamp}"));
    let mut count = 1;
    while name.exists() {
        count += 1;
        name = with_suffix(path, &format!(".{what}-{stamp}-{count}"));
    }
    name
}

const DAMAGED: &str = "damaged";
const REPLACED: &str = "replaced";

fn set_aside(path: &Path, what: String) -> OpenError {
    match move_aside(path, DAMAGED) {
        Ok(Some(aside)) => OpenError::Damaged { path: path.into(), aside, what },
        Ok(None) => unavailable(path, "it is gone"),
        Err(error) => unavailable(path, error),
    }
}

/// Moves a database, with its log, to a name beside it that says why; nothing when it is not there.
pub(crate) fn move_aside(path: &Path, why: &str) -> std::io::Result<Option<PathBuf>> {
    let aside = beside(path, why);
    let mut moved = None;
    // The database goes first: without its log it would look whole.
    for suffix in ["", "-wal", "-shm"] {
        let file = with_suffix(path, suffix);
        if file.exists() {
            std::fs::rename(&file, with_suffix(&aside, suffix))?;
            moved = Some(aside.clone());
        }
    }
    sync_directory(path)?;
    Ok(moved)
}

/// The newest database that was moved aside here.
fn find_aside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let starts = [DAMAGED, REPLACED].map(|why| format!("{name}.{why}-"));
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let aside = |entry: &PathBuf| {
        let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        starts.iter().any(|start| name.starts_with(start))
            && !name.ends_with("-wal")
            && !name.ends_with("-shm")
    };
    std::fs::read_dir(parent).ok()?.filter_map(|entry| Some(entry.ok()?.path())).filter(aside).max()
}

pub(crate) fn unavailable(
    path: &Path,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> OpenError {
    OpenError::Unavailable { path: path.into(), source: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &[&str] = &[MIGRATIONS[0]];
    const NEXT: &str = "ALTER TABLE agents ADD COLUMN colour TEXT; UPDATE agents SET colour = 'blue';";
    const BROKEN: &str = "UPDATE agents SET name = 'lost'; INSERT INTO nowhere VALUES (1);";

    fn old_home() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("klbr.db");
        let conn = open(&path, Options::default(), FIRST).unwrap();
        conn.execute("INSERT INTO agents (name) VALUES ('ada')", []).unwrap();
        (home, path)
    }

    fn version(conn: &Connection) -> u32 {
        conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    fn copies(home: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_str().unwrap().contains("klbr.db.schema-1-2")).collect()
    }

    #[test]
    fn a_migration_copies_the_database_first() {
        let (home, path) = old_home();
        assert!(copies(home.path()).is_empty(), "a new database has nothing to lose");
        let steps = [FIRST, &[NEXT, "UPDATE agents SET colour = colour || '!'"]].concat();
        let conn = open(&path, Options::default(), &steps).unwrap();
        let colour: String = conn.query_row("SELECT colour FROM agents", [], |row| row.get(0)).unwrap();
        assert_eq!((version(&conn), &*colour), (3, "blue!"));
        let [copy] = &copies(home.path())[..] else { panic!("one copy") };
        let old = open(copy, Options { access: Access::Read, ..Options::default() }, FIRST).unwrap();
        assert_eq!(version(&old), 1);
        drop(open(&path, Options::default(), &steps).unwrap());
        assert_eq!(copies(home.path()).len(), 1, "nothing to migrate, nothing to copy");
    }

    #[test]
    fn a_broken_migration_changes_nothing() {
        let (home, path) = old_home();
        let steps = [FIRST, &[NEXT, BROKEN]].concat();
        let error = open(&path, Options::default(), &steps).unwrap_err();
        assert!(matches!(error, OpenError::Migration { to: 3, .. }), "{error:?}");
        let conn = open(&path, Options::default(), &steps[..2]).unwrap();
        let name: String = conn.query_row("SELECT name FROM agents", [], |row| row.get(0)).unwrap();
        assert_eq!((version(&conn), &*name), (2, "ada"), "each step is a transaction of its own");
        drop(conn);
        assert_eq!(copies(home.path()).len(), 1);
        let error = open(&path, Options::default(), FIRST).unwrap_err();
        assert!(matches!(error, OpenError::TooNew { found: 2, known: 1, .. }), "{error:?}");
        let reading = Options { access: Access::Read, ..Options::default() };
        let error = open(&path, reading, &steps).unwrap_err();
        assert!(matches!(error, OpenError::TooOld { found: 2, .. }), "{error:?}");
    }

    #[test]
    fn what_was_moved_aside_is_not_replaced_unasked() {
        let (home, path) = old_home();
        let fresh = home.path().join("fresh.db");
        copy_to(&connect(&path, Access::Read).unwrap(), &fresh).unwrap();
        std::fs::write(log_of(&path), b"a log that was left behind").unwrap();
        let replaced = replace(&fresh, &path).unwrap().unwrap();
        assert!(replaced.exists() && !log_of(&path).exists());
        drop(open(&path, Options::default(), FIRST).unwrap());
        // As if the process had ended between the two moves.
        std::fs::remove_file(&path).unwrap();
        let error = open(&path, Options::default(), FIRST).unwrap_err();
        assert!(matches!(&error, OpenError::SetAside { aside, .. } if *aside == replaced), "{error:?}");
    }
}
