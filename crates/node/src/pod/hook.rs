//! Lifecycle hooks: what a container wants done after its start and before its end.

use std::time::Duration;

use k8s_openapi::api::core::v1::LifecycleHandler;

use super::inside::Inside;

/// Runs a hook; an error says why it failed.
pub(crate) async fn run(hook: &LifecycleHandler, inside: &Inside, limit: Duration) -> Result<(), String> {
    if let Some(exec) = &hook.exec {
        return inside.exec(exec.command.as_deref().unwrap_or_default(), limit).await;
    }
    if let Some(http) = &hook.http_get {
        return inside.http(http, limit).await;
    }
    if let Some(tcp) = &hook.tcp_socket {
        return inside.tcp(tcp.host.as_deref(), &tcp.port, limit).await;
    }
    if let Some(sleep) = &hook.sleep {
        let wanted = Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or_default());
        tokio::time::sleep(wanted.min(limit)).await;
    }
    Ok(())
}
