//! Workers at work: failures, limits, the end.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::sync::mpsc;

use super::*;
use crate::manager::ManagerConfig;
use crate::queue::Priority;

/// Fails in every way there is, each once, and tells what it worked on.
struct Clumsy {
    attempts: AtomicU32,
    worked: mpsc::UnboundedSender<(&'static str, u32)>,
}

impl Process for Clumsy {
    type Key = &'static str;

    async fn process(&self, key: &&'static str, attempt: &Attempt) -> Result<Action, Error> {
        self.worked.send((key, attempt.failures)).expect("the test listens");
        if *key == "good" {
            return Ok(Action::Await);
        }
        match self.attempts.fetch_add(1, Ordering::SeqCst) {
            0 => panic!("clumsy"),
            1 => std::future::pending().await,
            2 => Err(Error::failed("no luck")),
            3 => Err(Error::Later { after: Duration::from_millis(1), why: "not yet".into() }),
            _ => Err(Error::Invalid("never".into())),
        }
    }
}

fn manager() -> Manager {
    let nobody =
        tower::service_fn(|_: Request<Body>| std::future::ready(Ok::<_, Infallible>(Response::new(Body::empty()))));
    Manager::new(Client::new(nobody, "default"), ManagerConfig::new("test"))
}

#[tokio::test]
async fn a_run_that_fails_in_any_way_harms_no_other_and_is_tried_again() {
    let mut manager = manager();
    let (worked, mut work) = mpsc::unbounded_channel();
    let clumsy = Clumsy { attempts: AtomicU32::new(0), worked };
    let controller = Controller::keyed(&manager, "clumsy", clumsy).workers(1).deadline(Duration::from_millis(50));
    let (queue, metrics, stop) = (controller.queue(), manager.metrics().clone(), CancellationToken::new());
    manager.add(controller);
    let running = tokio::spawn(manager.run(stop.clone()));

    queue.add("bad", Priority::Normal);
    for failures in 0..5 {
        assert_eq!(work.recv().await, Some(("bad", failures)));
    }
    queue.add("good", Priority::Normal);
    assert_eq!(work.recv().await, Some(("good", 0)));
    stop.cancel();
    running.await.unwrap().unwrap();

    let text = metrics.render();
    for line in [
        r#"controller_runtime_reconcile_panics_total{controller="clumsy"} 1"#,
        r#"controller_runtime_reconcile_timeouts_total{controller="clumsy"} 1"#,
        r#"controller_runtime_terminal_reconcile_errors_total{controller="clumsy"} 1"#,
        r#"controller_runtime_reconcile_errors_total{controller="clumsy"} 5"#,
        r#"controller_runtime_reconcile_total{controller="clumsy",result="success"} 1"#,
        r#"controller_runtime_active_workers{controller="clumsy"} 0"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

/// Holds each key until it is let go, and counts how many it holds.
struct Slow {
    at_work: Arc<AtomicU32>,
    started: mpsc::UnboundedSender<u32>,
    go_on: Arc<tokio::sync::Semaphore>,
}

impl Process for Slow {
    type Key = u32;

    async fn process(&self, _: &u32, _: &Attempt) -> Result<Action, Error> {
        let at_work = self.at_work.fetch_add(1, Ordering::SeqCst) + 1;
        self.started.send(at_work).expect("the test listens");
        self.go_on.acquire().await.expect("the semaphore stays open").forget();
        self.at_work.fetch_sub(1, Ordering::SeqCst);
        Ok(Action::Await)
    }
}

#[tokio::test]
async fn workers_are_bounded_and_a_stop_waits_for_what_is_in_progress() {
    let mut manager = manager();
    let (started, mut starts) = mpsc::unbounded_channel();
    let (at_work, go_on) = (Arc::new(AtomicU32::new(0)), Arc::new(tokio::sync::Semaphore::new(0)));
    let slow = Slow { at_work: at_work.clone(), started, go_on: go_on.clone() };
    let controller = Controller::keyed(&manager, "slow", slow).workers(2);
    let (queue, stop) = (controller.queue(), CancellationToken::new());
    manager.add(controller);
    let running = tokio::spawn(manager.run(stop.clone()));

    for key in 0..4 {
        queue.add(key, Priority::Normal);
    }
    let most = [starts.recv().await, starts.recv().await].into_iter().flatten().max();
    assert_eq!((most, queue.len()), (Some(2), 2));
    stop.cancel();
    tokio::task::yield_now().await;
    assert!(!running.is_finished());
    go_on.add_permits(4);
    running.await.unwrap().unwrap();
    assert_eq!(at_work.load(Ordering::SeqCst), 0);
    assert_eq!(starts.try_recv().ok(), None, "nothing new begins after the stop");
}
