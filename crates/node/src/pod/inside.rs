//! Acts on a running container from outside: runs programs in it, asks its ports.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use super::{grpc, unverified};
use crate::cgroup::Group;
use crate::chaos::Ailment;
use crate::low_port;
use crate::runc::Contained;
use crate::sandbox::{self, ExecSpec, Input, Launcher, Output, Process, Report, Running};

/// What of a program's output is kept to explain its failure.
const OUTPUT_BYTES_MAX: usize = 1024;
const OUTPUT_CHUNK_BYTES: usize = 8 << 10;
/// How long a program that was ended, or the rest of its output, is waited for.
const END_LIMIT: Duration = Duration::from_secs(1);

/// A running container.
#[derive(Debug, Clone)]
pub(crate) struct Inside {
    pub(crate) launcher: Launcher,
    /// The container's first process and its supervisor.
    pub(crate) init: i32,
    pub(crate) supervisor: i32,
    /// Environment, user and directory of its program.
    pub(crate) process: Process,
    /// What its sockets are confined to.
    pub(crate) confined: Option<Ipv4Addr>,
    /// Where its ports are.
    pub(crate) address: Ipv4Addr,
    /// The network namespace of its Pod.
    pub(crate) network: Option<PathBuf>,
    /// What runc knows it as, where that runs it.
    pub(crate) contained: Option<Contained>,
    /// What holds it to its limits.
    pub(crate) group: Option<Group>,
    pub(crate) container: Container,
    /// Whether its supervisor takes orders of faults, and whether it is asked about writes to files.
    pub(crate) takes_faults: bool,
    pub(crate) asks_of_files: bool,
    /// What programs that are run in it suffer as well.
    pub(crate) ailment: Ailment,
}

impl Inside {
    /// Runs a program in the container; an error says why it failed. One that takes too long is ended, and with it what
    /// it started in its own session.
    pub(crate) async fn exec(&self, argv: &[String], limit: Duration) -> Result<(), String> {
        let late = || Err(format!("command {argv:?} timed out after {}s", limit.as_secs()));
        let spec = self.exec_spec(argv, Input::Nothing);
        let deadline = tokio::time::Instant::now() + limit;
        let Ok(begun) = tokio::time::timeout_at(deadline, self.launcher.exec("exec", &spec)).await else {
            return late();
        };
        let mut running = begun.map_err(|error| error.to_string())?;
        let said = Said::listen(&mut running);
        match tokio::time::timeout_at(deadline, exit_code(&mut running)).await {
            Ok(Ok(0)) => Ok(()),
            Ok(Ok(code)) => {
                let text = said.text().await;
                Err(if text.is_empty() { format!("command exited with {code}") } else { text })
            }
            Ok(Err(why)) => Err(why),
            Err(_) => {
                running.request(sandbox::Request::Kill).await;
                let _ = tokio::time::timeout(END_LIMIT, exit_code(&mut running)).await;
                late()
            }
        }
    }

    /// Describes a program to run in the container.
    pub(crate) fn exec_spec(&self, argv: &[String], input: Input) -> ExecSpec {
        let process = Process { argv: argv.to_vec(), ..self.process.clone() };
        ExecSpec {
            init: self.init,
            supervisor: self.supervisor,
            process,
            address: self.confined,
            input,
            group: self.group.clone(),
            network: self.network.clone(),
            contained: self.contained.clone(),
            faults: self.ailment.now(),
        }
    }

    /// Opens a connection to a port.
    pub(crate) async fn tcp(&self, host: Option<&str>, port: &IntOrString, limit: Duration) -> Result<(), String> {
        self.connect(host, port, limit).await.map(drop)
    }

    /// Makes an HTTP request; a status from 200 to 399 is good.
    pub(crate) async fn http(&self, action: &HTTPGetAction, limit: Duration) -> Result<(), String> {
        let ask = async {
            let stream = self.connect(action.host.as_deref(), &action.port, limit).await?;
            let peer = stream.peer_addr().map_err(|error| error.to_string())?;
            let status = match action.scheme.as_deref() {
                Some("HTTPS") => get(unverified::begin(stream, peer.ip()).await?, peer, action).await?,
                _ => get(stream, peer, action).await?,
            };
            if (200..400).contains(&status) {
                Ok(())
            } else {
                Err(format!("HTTP probe failed with statuscode: {status}"))
            }
        };
        let late = || Err(format!("no answer within {}s (Client.Timeout exceeded)", limit.as_secs()));
        tokio::time::timeout(limit, ask).await.unwrap_or_else(|_| late())
    }

    /// Asks the health service of a gRPC server.
    pub(crate) async fn grpc(&self, port: i32, service: &str, limit: Duration) -> Result<(), String> {
        let ask = async {
            let stream = self.connect(None, &IntOrString::Int(port), limit).await?;
            grpc::check(stream, &format!("{}:{port}", self.address), service).await
        };
        let late = || Err(format!("timeout: health rpc did not complete within {}s", limit.as_secs()));
        tokio::time::timeout(limit, ask).await.unwrap_or_else(|_| late())
    }

    async fn connect(&self, host: Option<&str>, port: &IntOrString, limit: Duration) -> Result<TcpStream, String> {
        let port = self.port(port)?;
        let host = match host.filter(|host| !host.is_empty()) {
            Some(host) => host.parse().map_err(|_| format!("{host:?} is no address"))?,
            None => self.address,
        };
        let address = SocketAddr::from((host, port));
        match tokio::time::timeout(limit, low_port::connect(address)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(format!("dial tcp {address}: {error}")),
            Err(_) => Err(format!("dial tcp {address}: i/o timeout")),
        }
    }

    fn port(&self, port: &IntOrString) -> Result<u16, String> {
        let number = match port {
            IntOrString::Int(number) => Some(*number),
            IntOrString::String(name) => {
                let named = self.container.ports.iter().flatten().find(|port| port.name.as_ref() == Some(name));
                named.map(|port| port.container_port).or_else(|| name.parse().ok())
            }
        };
        number
            .and_then(|number| u16::try_from(number).ok())
            .ok_or_else(|| format!("the container has no port {port:?}"))
    }
}

async fn exit_code(running: &mut Running) -> Result<i32, String> {
    loop {
        match running.next_report().await {
            Report::Exited(code) => return Ok(code),
            Report::Failed(why) => return Err(why),
            Report::Started { .. } | Report::Attached(_) | Report::Notice(_) | Report::Suffers { .. } => {}
        }
    }
}

/// What a program says: the beginning is kept, all of it is read, so that no program waits for a reader.
struct Said {
    beginning: Arc<Mutex<Vec<u8>>>,
    task: AbortOnDropHandle<()>,
}

impl Said {
    fn listen(running: &mut Running) -> Self {
        let beginning: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (output, kept) = (running.take_output(), Arc::clone(&beginning));
        let task = tokio::spawn(async move {
            if let Some((stdout, stderr)) = output {
                tokio::join!(take(stdout, &kept), take(stderr, &kept));
            }
        });
        Self { beginning, task: AbortOnDropHandle::new(task) }
    }

    /// The beginning, once the program has ended; what it left running may go on talking.
    async fn text(self) -> String {
        let _ = tokio::time::timeout(END_LIMIT, self.task).await;
        let bytes = self.beginning.lock().expect("the lock is never held across a panic").clone();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

async fn take(mut output: Output, kept: &Mutex<Vec<u8>>) {
    let mut chunk = vec![0; OUTPUT_CHUNK_BYTES];
    while let Ok(read @ 1..) = output.read(&mut chunk).await {
        let mut kept = kept.lock().expect("the lock is never held across a panic");
        let room = OUTPUT_BYTES_MAX.saturating_sub(kept.len());
        kept.extend_from_slice(&chunk[..read.min(room)]);
    }
}

async fn get<S>(stream: S, peer: SocketAddr, action: &HTTPGetAction) -> Result<u16, String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let path = action.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
    let uri: Uri = path.parse().map_err(|_| format!("{path:?} is no path"))?;
    let mut request = Request::get(uri).header("user-agent", "kube-probe/1.36").header("accept", "*/*");
    let headers = action.http_headers.iter().flatten();
    let own_host = headers.clone().any(|header| header.name.eq_ignore_ascii_case("host"));
    if !own_host {
        request = request.header("host", peer.to_string());
    }
    for header in headers {
        request = request.header(&header.name, &header.value);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(|error| error.to_string());
    connection.abort();
    Ok(answer?.status().as_u16())
}
