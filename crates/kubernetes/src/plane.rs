//! A whole control plane, from its first process to its last.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::commands::free_port;
use crate::keys::USERS;
use crate::{Admission, Controllers, Keys, Place, PlaneError, Process, Programs, kubeconfig};

/// How long etcd may take until it accepts connections.
const ETCD_TIME_MAX: Duration = Duration::from_secs(60);
/// How long the API server may take until it is ready, on a busy machine.
const SERVER_TIME_MAX: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(50);

/// What a control plane is to be like.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which controllers run.
    pub controllers: Controllers,
    /// Which requests are admitted.
    pub admission: Admission,
    /// The address of the API server.
    pub address: Ipv4Addr,
    /// Its port; any if nothing is said.
    pub port: Option<u16>,
    /// The addresses of Services, and the first of them.
    pub services: (String, Ipv4Addr),
    /// Further flags of the API server.
    pub flags: Vec<String>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            controllers: Controllers::default(),
            admission: Admission::default(),
            address: Ipv4Addr::LOCALHOST,
            port: None,
            services: ("10.0.0.0/24".to_owned(), Ipv4Addr::new(10, 0, 0, 1)),
            flags: Vec::new(),
        }
    }
}

/// A control plane that runs; it ends with the value. Fields end in their order: whoever uses the API server goes first.
#[derive(Debug)]
pub struct ControlPlane {
    controllers: Vec<Process>,
    server: Process,
    etcd: Process,
    place: Place,
    keys: Keys,
}

impl ControlPlane {
    /// Starts a control plane with nothing in it, in an empty folder. `is_ready` asks the API server by its
    /// administrator's kubeconfig; the controllers start after that, as they give up on a server that is not there.
    ///
    /// # Errors
    /// If a program cannot be started, or does not answer in time.
    pub fn start(
        programs: &Programs,
        folder: &Path,
        plan: &Plan,
        is_ready: &dyn Fn(&Path) -> bool,
    ) -> Result<Self, PlaneError> {
        let keys = Keys::make(&folder.join("pki"), &[plan.address, Ipv4Addr::LOCALHOST, plan.services.1])?;
        let place = Place {
            folder: folder.to_owned(),
            keys: keys.folder().to_owned(),
            address: plan.address,
            port: plan.port.map_or_else(free_port, Ok)?,
            etcd: [free_port()?, free_port()?],
            services: plan.services.0.clone(),
        };
        for user in USERS {
            let path = folder.join(format!("{}.kubeconfig", user.file));
            let text = kubeconfig(&place.server(), keys.folder(), user.file);
            fs::write(&path, text).map_err(PlaneError::file(&path))?;
        }
        let log = |name: &str| folder.join(format!("{name}.log"));
        let etcd = Process::start(&mut place.etcd_command(&programs.etcd), &log("etcd"))?;
        await_port(place.etcd[0], &log("etcd"))?;
        let mut command = place.api_server_command(&programs.api_server, plan.admission);
        let server = Process::start(command.args(&plan.flags), &log("kube-apiserver"))?;
        let mut plane = Self { controllers: Vec::new(), server, etcd, place, keys };
        plane.wait(is_ready)?;
        plane.controllers = start_controllers(programs, &plane.place, plan.controllers)?;
        Ok(plane)
    }

    fn wait(&mut self, is_ready: &dyn Fn(&Path) -> bool) -> Result<(), PlaneError> {
        let (begin, kubeconfig) = (Instant::now(), self.kubeconfig());
        while !is_ready(&kubeconfig) {
            if self.server.is_over() || begin.elapsed() > SERVER_TIME_MAX {
                let log = self.place.folder.join("kube-apiserver.log");
                return Err(PlaneError::Silent { name: "kube-apiserver", log });
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// The kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.place.folder.join("admin.kubeconfig")
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Its keys, for further users.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Lets it live on without this value: the numbers of its processes, in the order in which to end them.
    pub fn release(self) -> Vec<u32> {
        let Self { controllers, server, etcd, .. } = self;
        controllers.into_iter().chain([server, etcd]).map(Process::release).collect()
    }
}

fn start_controllers(programs: &Programs, place: &Place, wanted: Controllers) -> Result<Vec<Process>, PlaneError> {
    let mut processes = Vec::new();
    let file = |name: &str| place.folder.join(name);
    if wanted != Controllers::None {
        let kubeconfig = file("controller-manager.kubeconfig");
        let mut command = place.controller_manager_command(&programs.controller_manager, &kubeconfig, wanted);
        processes.push(Process::start(&mut command, &file("kube-controller-manager.log"))?);
    }
    if wanted == Controllers::All {
        let mut command = place.scheduler_command(&programs.scheduler, &file("scheduler.kubeconfig"));
        processes.push(Process::start(&mut command, &file("kube-scheduler.log"))?);
    }
    Ok(processes)
}

/// Waits until etcd accepts connections.
fn await_port(port: u16, log: &Path) -> Result<(), PlaneError> {
    let begin = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if begin.elapsed() > ETCD_TIME_MAX {
            return Err(PlaneError::Silent { name: "etcd", log: log.to_owned() });
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
