//! A folder in which handles store the decisions of plans for later handles, also of other processes.
//!
//! Each problem has a file whose name is a hash of everything that decisions depend on (library version,
//! backend, device, arguments of the plan's creation, settings, patterns). Files are written under another
//! name and then renamed, so that nobody reads half a file; of two writers of the same file the last one
//! wins. Content of a file is checked like the bytes given to `tarsiaPlan_setDecisions`.
//!
//! Others may be able to write to the folder, so any name may belong to anything. Therefore a file is written
//! as a new file with a random name (O_EXCL: never through a link, and never into the file of another process
//! or machine), and only regular files are read, which neither block nor are endless.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::{Builder, NamedTempFile};

use super::decisions::bytes::most_bytes;
use crate::error::{Error, Result};
use crate::matrix::fingerprint::Fingerprint;

/// Prefix and suffix of the names of unfinished files, with random letters between them.
const UNFINISHED: (&str, &str) = (".tarsia-", ".unfinished");

/// Age from which an unfinished file counts as abandoned: writing one takes milliseconds, and the clocks of
/// machines that share a folder differ by less than this.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// A folder with stored decisions.
#[derive(Debug)]
pub struct PlanCache {
    folder: PathBuf,
}

/// Returns the error `InvalidData` for a file that exists but is not read.
fn refused(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

impl PlanCache {
    /// Creates the folder if it does not exist, and tests that it can be written. The path is made absolute,
    /// so that it stays valid if the process changes its working directory.
    pub fn open(folder: &Path) -> Result<Self> {
        let fails = |error: io::Error| Error::invalid("folder", format!("{}: {error}", folder.display()));
        let folder = &std::path::absolute(folder).map_err(fails)?;
        fs::create_dir_all(folder).map_err(fails)?;
        let cache = PlanCache { folder: folder.clone() };
        cache.unfinished().and_then(NamedTempFile::close).map_err(fails)?;
        cache.tidy();
        Ok(cache)
    }

    /// Returns the path of the file for a problem.
    pub fn file(&self, key: Fingerprint) -> PathBuf {
        self.folder.join(format!("{:016x}{:016x}.tarsia", key[0], key[1]))
    }

    /// Creates a new unfinished file, which is removed when it is dropped.
    fn unfinished(&self) -> io::Result<NamedTempFile> {
        let mut builder = Builder::new();
        // Users who share the folder may read the file, as far as the process's umask permits.
        builder
            .prefix(UNFINISHED.0)
            .suffix(UNFINISHED.1)
            .rand_bytes(12)
            .permissions(Permissions::from_mode(0o666));
        builder.tempfile_in(&self.folder)
    }

    /// Removes unfinished files of processes that ended while writing. Errors are ignored, since the next
    /// handle tries again.
    fn tidy(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_unfinished = name
                .to_str()
                .is_some_and(|name| name.starts_with(UNFINISHED.0) && name.ends_with(UNFINISHED.1));
            if !is_unfinished {
                continue;
            }
            // The metadata of a link are its own, not those of its target. A time in the future counts as no
            // age.
            let changed = entry.metadata().and_then(|data| data.modified());
            let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
            if age.is_some_and(|age| age > ABANDONED) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Returns the stored bytes for a problem with this many rows, if there are any.
    pub fn read(&self, key: Fingerprint, rows: usize) -> io::Result<Option<Vec<u8>>> {
        // Opening a FIFO does not wait for a writer (O_NONBLOCK), and a terminal does not become the
        // process's controlling one (O_NOCTTY).
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(self.file(key)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                return Err(refused("it is a symbolic link"))
            }
            Err(error) => return Err(error),
        };
        read_bounded(&file, most_bytes(rows)).map(Some)
    }

    /// Stores the decisions of a problem.
    pub fn write(&self, key: Fingerprint, bytes: &[u8]) -> io::Result<()> {
        let mut unfinished = self.unfinished()?;
        unfinished.write_all(bytes)?;
        unfinished.as_file().sync_all()?;
        // Renaming replaces a link itself, not its target.
        unfinished.persist(self.file(key)).map(drop).map_err(|error| error.error)
    }
}

/// Reads a regular file, which may have at most `most` bytes.
fn read_bounded(file: &File, most: usize) -> io::Result<Vec<u8>> {
    let data = file.metadata()?;
    if !data.is_file() {
        return Err(refused("it is not a regular file"));
    }
    let mut out = Vec::new();
    // One more byte is read to detect a file that has grown in the meantime.
    if data.len() <= most as u64 {
        let room = data.len() as usize + 1;
        out.try_reserve_exact(room).map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
        file.take(most as u64 + 1).read_to_end(&mut out)?;
    }
    if data.len() > most as u64 || out.len() > most {
        return Err(refused("it has more bytes than decisions can have"));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_folder_is_one_place() {
        let folder = tempfile::tempdir().unwrap();
        let up = std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect::<PathBuf>();
        let relative = up.join(folder.path().strip_prefix("/").unwrap());
        let file = PlanCache::open(&relative).unwrap().file([1, 2]);
        assert!(file.is_absolute(), "{}", file.display());
        assert_eq!(file.parent().unwrap().canonicalize().unwrap(), folder.path().canonicalize().unwrap());
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let cache = PlanCache::open(&folder.path().join("a/b")).unwrap();
        assert_eq!(cache.read([1, 2], 10).unwrap(), None);
        cache.write([1, 2], b"first").unwrap();
        cache.write([1, 2], b"second").unwrap();
        cache.write([2, 1], b"other").unwrap();
        assert_eq!(cache.read([1, 2], 10).unwrap().unwrap(), b"second");
        assert_eq!(cache.read([2, 1], 10).unwrap().unwrap(), b"other");
        // Nothing unfinished is left.
        assert_eq!(fs::read_dir(&cache.folder).unwrap().count(), 2);
    }

    #[test]
    fn folders_that_are_none_and_files_that_are_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"x").unwrap();
        for path in [&file, &file.join("below")] {
            let error = PlanCache::open(path).unwrap_err();
            assert!(error.message.starts_with("folder: ") && error.message.contains("file"), "{error}");
        }
        let cache = PlanCache::open(folder.path()).unwrap();
        fs::write(cache.file([3, 3]), vec![0; most_bytes(10) + 1]).unwrap();
        assert_eq!(cache.read([3, 3], 10).unwrap_err().kind(), ErrorKind::InvalidData);
        // The row order of a problem with one more row may be longer by one number.
        assert_eq!(cache.read([3, 3], 11).unwrap().unwrap().len(), most_bytes(10) + 1);
        fs::create_dir(cache.file([4, 4])).unwrap();
        assert!(cache.read([4, 4], 10).is_err() && cache.write([4, 4], b"").is_err());
    }
}
