//! A real object storage for a test: versitygw over a folder, on an address of this machine.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// As `cargo xtask tools` builds it.
const PROGRAM: &str = "versitygw-1.8.0";
/// What the server knows its user by. The second is looked for in all that is told: it must be nowhere.
pub(crate) const KEY_ID: &str = "the-access-key-of-the-test";
pub(crate) const KEY: &str = "canary-of-the-object-storage";
pub(crate) const BUCKET: &str = "backups";
/// A server that does not listen by then does not come.
const START_MAX: Duration = Duration::from_secs(30);

/// A server that ends with its test.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server with one bucket.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more words, such as those of its certificate.
    pub(crate) fn start_with(words: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join(BUCKET)).expect("a bucket is a folder");
        Self::start_by(Command::new(program()), words, folder)
    }

    /// Starts a server by a command that becomes the program, over a folder that has, or will have, the bucket.
    pub(crate) fn start_by(mut command: Command, words: &[&str], folder: tempfile::TempDir) -> Self {
        let address = free_address();
        let process = command
            .args(["--quiet", "--port", &address.to_string()])
            .args(words)
            .arg("posix")
            .arg(folder.path())
            .env("ROOT_ACCESS_KEY_ID", KEY_ID)
            .env("ROOT_SECRET_ACCESS_KEY", KEY)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = Self { process, address, folder };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < START_MAX, "the server does not listen at {address}");
            thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// The folder behind the bucket.
    pub(crate) fn bucket(&self) -> PathBuf {
        self.folder.path().join(BUCKET)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Not one of 127.0.0.0/10: in a Pod, those are the Pod's own.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.255.0.1:0").expect("a port");
    listener.local_addr().expect("it has a number")
}

/// The program of the server.
pub(crate) fn program() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".cache"));
    let path = cache.join("windlass/tools").join(PROGRAM);
    assert!(path.is_file(), "no {PROGRAM}: run `cargo xtask tools` first");
    path
}
