//! The connection to a bucket: its settings, and a thread on which its requests are made.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum, S3ConditionalPut};
use object_store::path::Path;
use object_store::{BackoffConfig, RetryConfig};
use tokio::runtime::{Builder, Runtime};

use super::super::location::S3;
use super::fault::Whereabouts;
use super::keys::Keys;
use super::transport::Transport;
use super::{StorageError, checked};

/// How often a request is tried again, and for how long.
const RETRIES_MAX: usize = 6;
const RETRY_MAX: Duration = Duration::from_secs(60);
const BACKOFF: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// No operation takes longer, with all that is tried again in it.
const OPERATION_MAX: Duration = Duration::from_secs(300);

/// What a storage and what reads from it share.
#[derive(Debug)]
pub(super) struct Link {
    store: Arc<AmazonS3>,
    runtime: Option<Runtime>,
    prefix: String,
    whereabouts: Whereabouts,
}

/// Why an operation did not give what it was begun for.
#[derive(Debug)]
pub(super) enum Failure {
    /// The storage's answer.
    Answer(object_store::Error),
    /// There was none in time.
    Late,
}

impl Link {
    /// A connection by these settings. Nothing is asked yet.
    pub(super) fn new(settings: &S3, keys: &Keys) -> Result<Self, StorageError> {
        let unusable = |error: &dyn std::error::Error| StorageError::Settings(error.to_string());
        let backoff = BackoffConfig { init_backoff: BACKOFF, max_backoff: BACKOFF_MAX, ..BackoffConfig::default() };
        let retry = RetryConfig { backoff, max_retries: RETRIES_MAX, retry_timeout: RETRY_MAX };
        // With the bucket in the host's name, the library wants it in the endpoint, too.
        let endpoint = match settings.endpoint.split_once("://") {
            Some((scheme, host)) if settings.virtual_hosted => format!("{scheme}://{}.{host}", settings.bucket),
            _ => settings.endpoint.clone(),
        };
        let mut builder = AmazonS3Builder::new()
            .with_endpoint(endpoint)
            .with_allow_http(settings.endpoint.starts_with("http://"))
            .with_bucket_name(&settings.bucket)
            .with_region(&settings.region)
            .with_virtual_hosted_style_request(settings.virtual_hosted)
            .with_access_key_id(&keys.id)
            .with_secret_access_key(&keys.secret)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_checksum_algorithm(Checksum::SHA256)
            .with_retry(retry)
            .with_http_connector(Transport::trusting(settings.ca_certificate.as_deref())?);
        if let Some(token) = &keys.token {
            builder = builder.with_token(token);
        }
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Ok(Self {
            store: Arc::new(builder.build().map_err(|error| unusable(&error))?),
            runtime: Some(runtime.map_err(|error| unusable(&error))?),
            prefix: settings.prefix.trim_matches('/').to_owned(),
            whereabouts: Whereabouts { endpoint: settings.endpoint.clone(), bucket: settings.bucket.clone() },
        })
    }

    /// The bucket.
    pub(super) fn store(&self) -> Arc<AmazonS3> {
        self.store.clone()
    }

    /// Which it is, for messages.
    pub(super) fn whereabouts(&self) -> &Whereabouts {
        &self.whereabouts
    }

    /// What a path is called in the bucket.
    pub(super) fn key(&self, path: &str) -> Result<Path, StorageError> {
        let path = checked(path)?;
        let whole = if self.prefix.is_empty() { path.to_owned() } else { format!("{}/{path}", self.prefix) };
        Path::parse(whole).map_err(|_| StorageError::Path(path.to_owned()))
    }

    /// What the top is called in the bucket.
    pub(super) fn top(&self) -> Path {
        Path::from(self.prefix.as_str())
    }

    /// Begins an operation, and gives what waits for it.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        operation: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Pending<T> {
        let (tell, told) = mpsc::sync_channel(1);
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                let _ = tell.send(tokio::time::timeout(OPERATION_MAX, operation).await);
            });
        }
        Pending { told }
    }

    /// Runs an operation to its end.
    pub(super) fn run<T: Send + 'static>(
        &self,
        operation: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, Failure> {
        self.begin(operation).wait()
    }

    /// The error that a failure stands for.
    pub(super) fn fault(&self, path: &str, failure: &Failure) -> StorageError {
        match failure {
            Failure::Answer(error) => self.whereabouts.fault(path, error),
            Failure::Late => self.whereabouts.late(),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // To wait for its thread is not allowed where the last user is a task itself.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// An operation that is on its way.
pub(super) struct Pending<T> {
    told: mpsc::Receiver<Result<object_store::Result<T>, tokio::time::error::Elapsed>>,
}

impl<T> Pending<T> {
    /// What came of it. The caller blocks, as on a file: it may be a task of another runtime, and is not asked to be one.
    pub(super) fn wait(self) -> Result<T, Failure> {
        match self.told.recv() {
            Ok(Ok(done)) => done.map_err(Failure::Answer),
            Ok(Err(_)) | Err(_) => Err(Failure::Late),
        }
    }
}
