//! How a peer is started.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::Peer;
use super::http::{FakeHttp, Listening, Transport, pump};
use super::peer::{Sink, Source, Started};
use super::programs::{fake_server, unhurry};
use super::transcript::Transcript;

/// The environment variable that marks all processes of a peer.
pub const MARK: &str = "TEST_PEER";

/// A peer to be: the program, its options, and a home of its own.
pub struct Setup {
    pub(super) home: Arc<TempDir>,
    proxied: bool,
    options: Vec<String>,
    flags: Vec<String>,
    variables: Vec<(String, String)>,
    wrapper: Vec<String>,
    server_wrapper: Vec<String>,
    sockets: bool,
    /// The address that is listened on, if it speaks HTTP.
    served: Option<String>,
    upstream: Option<Transport>,
    url: Option<String>,
}

impl Setup {
    /// The proxy in front of the fake server.
    pub fn proxied() -> Self {
        Self::new(true)
    }

    /// The fake server itself.
    pub fn direct() -> Self {
        Self::new(false)
    }

    /// The proxy finds the fake server, which has these flags, at a URL over Streamable HTTP.
    pub fn remote(flags: &[&str]) -> Self {
        Self::proxied().upstream(Transport::Http).flags(flags)
    }

    fn new(proxied: bool) -> Self {
        let home = Arc::new(tempfile::tempdir().expect("a temporary directory"));
        Self {
            home,
            proxied,
            options: vec![],
            flags: vec![],
            variables: vec![],
            wrapper: vec![],
            server_wrapper: vec![],
            sockets: false,
            served: None,
            upstream: None,
            url: None,
        }
    }

    /// Options of the proxy, before the `--`.
    pub fn options<T: AsRef<str>>(mut self, options: &[T]) -> Self {
        self.options.extend(options.iter().map(|option| option.as_ref().to_owned()));
        self
    }

    /// Flags of the fake server.
    pub fn flags<T: AsRef<str>>(mut self, flags: &[T]) -> Self {
        self.flags.extend(flags.iter().map(|flag| flag.as_ref().to_owned()));
        self
    }

    /// Starts the peer by a shell script, in which `"$@"` is its command line.
    pub fn through(mut self, script: &str) -> Self {
        self.wrapper = shell(script);
        self
    }

    /// Starts the fake server by a shell script, in which `"$@"` is its command line.
    pub fn server_through(mut self, script: &str) -> Self {
        self.server_wrapper = shell(script);
        self
    }

    /// Puts another program in place of the fake server; it gets the fake server's command line as
    /// its arguments.
    pub fn server(mut self, program: &str) -> Self {
        self.server_wrapper = vec![program.to_owned()];
        self
    }

    /// stdin and stdout are sockets, as Node gives them to its children.
    pub fn sockets(mut self) -> Self {
        self.sockets = true;
        self
    }

    /// The peer speaks Streamable HTTP: to `unhurry serve`, or to the fake server itself.
    pub fn served(self) -> Self {
        self.listening_on("127.0.0.1:0")
    }

    /// The same at this address.
    pub fn listening_on(mut self, address: &str) -> Self {
        self.served = Some(address.to_owned());
        self
    }

    /// The proxy finds the fake server at a URL, over this transport.
    pub fn upstream(mut self, transport: Transport) -> Self {
        self.upstream = Some(transport);
        self
    }

    /// The proxy is to find its server at this URL, whatever is there.
    pub fn at(mut self, url: &str) -> Self {
        self.url = Some(url.to_owned());
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes the user's config file, which the proxy finds by itself.
    pub fn config(self, toml: &str) -> Self {
        let directory = self.home.path().join("config/unhurry");
        fs::create_dir_all(&directory).expect("the config directory");
        fs::write(directory.join("config.toml"), toml).expect("the config file");
        self
    }

    /// Lives in the home of another peer: the same job store, config, journal and user.
    pub fn in_home_of(mut self, peer: &Peer) -> Self {
        self.home = peer.home();
        self
    }

    /// A path in the home.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Starts the peer.
    pub fn spawn(self) -> Peer {
        let mark = new_mark(self.home.path());
        let upstream = self.upstream.map(|transport| {
            FakeHttp::start_in(Arc::clone(&self.home), transport, self.flags.clone())
        });
        let mut command = self.command(upstream.as_ref());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env(MARK, &mark);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let sockets = self.sockets.then(|| on_sockets(&mut command));
        let mut child = command.kill_on_drop(true).spawn().expect("the program starts");
        let stderr = Transcript::of(child.stderr.take().expect("stderr is piped"));
        let listening = self.served.is_some().then(|| self.listening(&mut child, &stderr));
        let ways: (Sink, Source) = match (sockets, &listening) {
            (Some((to, from)), _) => (Box::new(to), Box::new(from)),
            (None, Some(listening)) => pump(listening.clone()),
            (None, None) => (
                Box::new(child.stdin.take().expect("stdin is piped")),
                Box::new(child.stdout.take().expect("stdout is piped")),
            ),
        };
        Peer::new(Started { child, ways, stderr, listening, upstream, home: self.home, mark })
    }

    /// Where the URL is written: the proxy logs it, the fake server prints it.
    fn listening(&self, child: &mut Child, stderr: &Transcript) -> Listening {
        if self.proxied {
            return Listening(stderr.clone());
        }
        Listening(Transcript::of(child.stdout.take().expect("stdout is piped")))
    }

    fn command(&self, upstream: Option<&FakeHttp>) -> Command {
        let mut words: Vec<OsString> = self.wrapper.iter().map(Into::into).collect();
        if self.proxied {
            words.push(unhurry().into());
            if let Some(address) = &self.served {
                words.extend(["serve", "--listen", address].map(Into::into));
            }
            words.extend(self.options.iter().map(Into::into));
        }
        match upstream.map(FakeHttp::url).or_else(|| self.url.clone()) {
            Some(url) => words.push(url.into()),
            None => words.extend(self.server_command()),
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        self.clean(&mut command);
        command
    }

    /// The command line of the fake server; after a `--` where the proxy is to start it.
    fn server_command(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![];
        if self.proxied {
            words.push("--".into());
        }
        words.extend(self.server_wrapper.iter().map(Into::into));
        words.push(fake_server().into());
        words.push("--journal".into());
        words.push(self.path("journal").into());
        if let Some(address) = self.served.as_ref().filter(|_| !self.proxied) {
            words.extend(["--http", address].map(Into::into));
        }
        words.extend(self.flags.iter().map(Into::into));
        words
    }

    /// An environment in which nothing of the user is left but the path of programs.
    fn clean(&self, command: &mut Command) {
        command.env_clear().current_dir(self.home.path()).env("HOME", self.home.path());
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_STATE_HOME", self.path("state"));
        command.env("XDG_DATA_HOME", self.path("data"));
        for name in ["PATH", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
    }
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script, "sh"].map(str::to_owned).to_vec()
}

/// Gives the command sockets, one for each way; ours are returned.
fn on_sockets(command: &mut Command) -> (UnixStream, UnixStream) {
    let pair = || {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let theirs = theirs.into_std().expect("a socket of the system");
        theirs.set_nonblocking(false).expect("a socket may block");
        (ours, Stdio::from(OwnedFd::from(theirs)))
    };
    let ((to, stdin), (from, stdout)) = (pair(), pair());
    command.stdin(stdin).stdout(stdout);
    (to, from)
}

fn new_mark(home: &Path) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}#{}", home.display(), NEXT.fetch_add(1, Ordering::Relaxed))
}
