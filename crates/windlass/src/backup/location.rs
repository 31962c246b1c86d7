//! Where backups are, as people say it: on a volume, or in object storage.

use crate::prelude::*;

/// Where backups are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[schema(cel("has(self.claim) != has(self.s3)", message = "say either claim or s3"))]
pub struct Location {
    /// A volume that the Pods can mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub claim: Option<VolumeClaim>,
    /// A bucket of an object storage that is spoken to as S3 is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub s3: Option<S3>,
    /// What is stored there is encrypted before it leaves the Pod; as it is, if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub encryption: Option<Encryption>,
}

/// A Secret in the same namespace with keys: each entry is one, of 64 hexadecimal digits. The last by name writes, all read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct Encryption {
    /// Its name.
    #[schema(min_length = 1, max_length = 253)]
    pub secret_name: String,
}

/// A PersistentVolumeClaim in the same namespace. Where Pods are on several nodes, it has to be one that they can share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct VolumeClaim {
    /// Its name.
    #[schema(min_length = 1, max_length = 253)]
    pub name: String,
}

/// A bucket of an object storage that is spoken to as S3 is. The bucket has to be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct S3 {
    /// Where the storage is, such as https://s3.example.com:9000.
    #[schema(max_length = 1024, pattern = "^https?://[^/?#@ ]+$")]
    pub endpoint: String,
    /// The bucket.
    #[schema(pattern = "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
    pub bucket: String,
    /// The folder in the bucket below which everything is; its top if it is not said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(max_length = 512, pattern = "^([A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*)?$")]
    pub prefix: String,
    /// The region that requests are signed for.
    #[schema(min_length = 1, max_length = 63, default = "us-east-1")]
    pub region: String,
    /// Whether the bucket is part of the host's name (bucket.s3.example.com), and not of the path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub virtual_hosted: bool,
    /// Who asks.
    pub credentials: S3Credentials,
    /// The certificates (PEM) of the authorities that the storage is trusted by; those of the image if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 65536)]
    pub ca_certificate: Option<String>,
}

/// A Secret in the same namespace with `accessKeyID`, `secretAccessKey` and, where they are lent for a time, `sessionToken`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct S3Credentials {
    /// Its name.
    #[schema(min_length = 1, max_length = 253)]
    pub secret_name: String,
}
