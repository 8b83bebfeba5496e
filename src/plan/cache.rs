//! A folder in which handles keep the decisions of plans for later handles, of other processes too.
//!
//! A problem has a file whose name is a hash of all that decisions depend on (library version, backend,
//! device, what the plan was created with, settings, patterns). Files are written under another name and
//! then renamed, so that nobody finds half of one; of two that write the same, the last one counts. What
//! is found is believed no more than the bytes of `tarsiaPlan_setDecisions`.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::matrix::fingerprint::Fingerprint;

/// More than decisions can have.
const MOST_BYTES: u64 = 1 << 20;

/// A folder with decisions.
#[derive(Debug)]
pub struct PlanCache {
    folder: PathBuf,
}

impl PlanCache {
    /// Makes the folder if it does not exist, and tries to write to it.
    pub fn open(folder: &Path) -> Result<Self> {
        let fails = |error: io::Error| Error::invalid("folder", format!("{}: {error}", folder.display()));
        fs::create_dir_all(folder).map_err(fails)?;
        let cache = PlanCache { folder: folder.to_path_buf() };
        let probe = cache.unfinished();
        fs::write(&probe, []).map_err(fails)?;
        fs::remove_file(&probe).map_err(fails)?;
        Ok(cache)
    }

    /// Where the decisions of a problem are.
    pub fn file(&self, key: Fingerprint) -> PathBuf {
        self.folder.join(format!("{:016x}{:016x}.tarsia", key[0], key[1]))
    }

    /// A name that no other thread or process has.
    fn unfinished(&self) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        self.folder.join(format!(".{}-{count}.unfinished", std::process::id()))
    }

    /// What is kept of a problem, if anything is.
    pub fn read(&self, key: Fingerprint) -> io::Result<Option<Vec<u8>>> {
        let path = self.file(key);
        match fs::metadata(&path) {
            Ok(data) if data.len() > MOST_BYTES => Err(ErrorKind::InvalidData.into()),
            Ok(_) => fs::read(&path).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps the decisions of a problem.
    pub fn write(&self, key: Fingerprint, bytes: &[u8]) -> io::Result<()> {
        let unfinished = self.unfinished();
        let write = || {
            let mut file = fs::File::create(&unfinished)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&unfinished, self.file(key))
        };
        write().inspect_err(|_| {
            // Whatever came of it: the error is that of the writing.
            let _ = fs::remove_file(&unfinished);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let cache = PlanCache::open(&folder.path().join("a/b")).unwrap();
        assert_eq!(cache.read([1, 2]).unwrap(), None);
        cache.write([1, 2], b"first").unwrap();
        cache.write([1, 2], b"second").unwrap();
        cache.write([2, 1], b"other").unwrap();
        assert_eq!(cache.read([1, 2]).unwrap().unwrap(), b"second");
        assert_eq!(cache.read([2, 1]).unwrap().unwrap(), b"other");
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
        fs::write(cache.file([3, 3]), vec![0; MOST_BYTES as usize + 1]).unwrap();
        assert_eq!(cache.read([3, 3]).unwrap_err().kind(), ErrorKind::InvalidData);
        fs::create_dir(cache.file([4, 4])).unwrap();
        assert!(cache.read([4, 4]).is_err() && cache.write([4, 4], b"").is_err());
    }
}
