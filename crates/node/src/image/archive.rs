//! Images from files that a person has: OCI layouts, OCI and Docker archives, plain directories.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use windlass_schema::kubelet::architecture;

use super::layer::{self, Budget};
use super::store::{ImageConfig, ImageError, ImageStore, Record, doing};

/// Largest manifest, index or configuration that is read.
const DOCUMENT_BYTES_MAX: u64 = 4 << 20;
/// Indexes in indexes, before they are taken for a loop.
const INDEX_DEPTH_MAX: usize = 4;
/// Layers of one image; those who build images stop well before it.
const LAYERS_MAX: usize = 1024;

#[derive(Deserialize)]
struct DockerManifest {
    #[serde(rename = "Config")]
    config: String,
    #[serde(rename = "Layers")]
    layers: Vec<String>,
}

#[derive(Deserialize, Clone)]
struct Descriptor {
    digest: String,
    platform: Option<Platform>,
}

#[derive(Deserialize, Clone)]
struct Platform {
    architecture: String,
}

/// An OCI index or manifest: the one has `manifests`, the other `config` and `layers`.
#[derive(Deserialize)]
struct OciDocument {
    #[serde(default)]
    manifests: Vec<Descriptor>,
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ConfigFile {
    config: RunConfig,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct RunConfig {
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    env: Option<Vec<String>>,
    working_dir: String,
    user: String,
    stop_signal: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

impl From<RunConfig> for ImageConfig {
    fn from(run: RunConfig) -> Self {
        let split = |entry: String| entry.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            entrypoint: run.entrypoint.unwrap_or_default(),
            cmd: run.cmd.unwrap_or_default(),
            env: run.env.unwrap_or_default().into_iter().filter_map(split).collect(),
            workdir: if run.working_dir.is_empty() { "/".to_owned() } else { run.working_dir },
            user: run.user,
            stop_signal: run.stop_signal,
            labels: run.labels.unwrap_or_default(),
        }
    }
}

/// Puts the image at `path` into the store, if neither the archive nor what its layers become is more than `budget`.
pub(crate) fn add(store: &ImageStore, path: &Path, budget: Budget) -> Result<Record, ImageError> {
    if !path.is_dir() {
        let unpacked = tempfile::tempdir_in(parent_of(store)?).map_err(doing("create a directory"))?;
        let file = File::open(path).map_err(doing(format!("open {}", path.display())))?;
        let stream = decompressed(file).map_err(doing("read the archive"))?;
        layer::unpack(stream, unpacked.path(), &mut budget.clone())
            .map_err(doing(format!("unpack {}", path.display())))?;
        return add_layout(store, unpacked.path(), path, budget);
    }
    if path.join("index.json").is_file() || path.join("manifest.json").is_file() {
        return add_layout(store, path, path, budget);
    }
    add_directory(store, path, budget)
}

fn parent_of(store: &ImageStore) -> Result<PathBuf, ImageError> {
    let building = store.directory().join("building");
    fs::create_dir_all(&building).map_err(doing(format!("create {}", building.display())))?;
    Ok(building)
}

/// A directory is the root file system; a file `image.json` beside `rootfs` may say how it is run.
fn add_directory(store: &ImageStore, path: &Path, mut budget: Budget) -> Result<Record, ImageError> {
    let described = path.join("rootfs").is_dir();
    let files = if described { path.join("rootfs") } else { path.to_owned() };
    let config = if described && path.join("image.json").is_file() {
        read_json(&path.join("image.json"))?
    } else {
        ImageConfig::default()
    };
    let id = format!("dir-{:032x}", rand::random::<u128>());
    store.publish(&id, |rootfs| {
        let archive = tempfile::tempfile_in(parent_of(store)?).map_err(doing("create a file"))?;
        let mut builder = tar::Builder::new(archive);
        builder.follow_symlinks(false);
        builder.append_dir_all("", &files).map_err(doing(format!("read {}", files.display())))?;
        let mut archive = builder.into_inner().map_err(doing(format!("read {}", files.display())))?;
        let copied = archive.rewind().and_then(|()| layer::unpack(BufReader::new(archive), rootfs, &mut budget));
        copied.map_err(doing(format!("copy {}", files.display())))
    })?;
    Ok(Record { id, config, source: format!("directory {}", path.display()) })
}

fn add_layout(store: &ImageStore, layout: &Path, origin: &Path, mut budget: Budget) -> Result<Record, ImageError> {
    let problem =
        |problem: &str| ImageError::Archive { path: origin.display().to_string(), problem: problem.to_owned() };
    let (config_path, layers) = image_of(layout, &problem)?;
    if layers.len() > LAYERS_MAX {
        return Err(problem(&format!("it has {} layers, more than {LAYERS_MAX}", layers.len())));
    }
    let config_bytes = document(layout, &config_path)?;
    let config: ConfigFile = serde_json::from_slice(&config_bytes).map_err(|e| problem(&e.to_string()))?;
    let id = format!("sha256-{}", hex::encode(Sha256::digest(&config_bytes)));
    store.publish(&id, |rootfs| {
        for layer_path in &layers {
            let path = inside(layout, layer_path)?;
            let file = File::open(&path).map_err(doing(format!("open {}", path.display())))?;
            let stream = decompressed(file).map_err(doing("read a layer"))?;
            layer::unpack(stream, rootfs, &mut budget).map_err(doing(format!("unpack {}", layer_path.display())))?;
        }
        Ok(())
    })?;
    Ok(Record { id, config: config.config.into(), source: format!("archive {}", origin.display()) })
}

type Parts = (PathBuf, Vec<PathBuf>);

/// Where the configuration and the layers of the image in a layout are.
fn image_of(layout: &Path, problem: &dyn Fn(&str) -> ImageError) -> Result<Parts, ImageError> {
    if layout.join("index.json").is_file() {
        oci(layout, "index.json".into(), 0)?.ok_or_else(|| problem("it has no image for this architecture"))
    } else if layout.join("manifest.json").is_file() {
        let manifests: Vec<DockerManifest> =
            parsed(&layout.join("manifest.json"), &document(layout, Path::new("manifest.json"))?)?;
        let first = manifests.into_iter().next().ok_or_else(|| problem("it names no image"))?;
        Ok((first.config.into(), first.layers.into_iter().map(PathBuf::from).collect()))
    } else {
        Err(problem("it is no image: neither index.json (OCI) nor manifest.json (Docker) is there"))
    }
}

fn oci(layout: &Path, path: PathBuf, depth: usize) -> Result<Option<Parts>, ImageError> {
    let found: OciDocument = parsed(&path, &document(layout, &path)?)?;
    if let Some(config) = found.config {
        let layers = found.layers.iter().map(|layer| blob(&layer.digest)).collect();
        return Ok(Some((blob(&config.digest), layers)));
    }
    let fits = |d: &&Descriptor| d.platform.as_ref().is_none_or(|platform| platform.architecture == architecture());
    match found.manifests.iter().find(fits) {
        Some(manifest) if depth < INDEX_DEPTH_MAX => oci(layout, blob(&manifest.digest), depth + 1),
        _ => Ok(None),
    }
}

/// Where a layout keeps what a digest names; a digest cannot name anything else.
fn blob(digest: &str) -> PathBuf {
    let safe: String = digest
        .chars()
        .map(|c| if c == ':' { '/' } else { c })
        .filter(|c| c.is_ascii_alphanumeric() || *c == '/')
        .collect();
    Path::new("blobs").join(safe)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ImageError> {
    parsed(path, &limited(path)?)
}

fn parsed<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, ImageError> {
    serde_json::from_slice(text)
        .map_err(|e| ImageError::Archive { path: path.display().to_string(), problem: e.to_string() })
}

/// A document of a layout; links in it lead nowhere else.
fn document(layout: &Path, path: &Path) -> Result<Vec<u8>, ImageError> {
    limited(&inside(layout, path)?)
}

fn inside(layout: &Path, path: &Path) -> Result<PathBuf, ImageError> {
    crate::sandbox::resolve(layout, path).map(|path| layout.join(path)).map_err(doing("read the archive"))
}

fn limited(path: &Path) -> Result<Vec<u8>, ImageError> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(DOCUMENT_BYTES_MAX).read_to_end(&mut text))
        .map_err(doing(format!("read {}", path.display())))?;
    Ok(text)
}

/// Undoes the compression that the first bytes tell of.
fn decompressed(file: File) -> io::Result<Box<dyn Read>> {
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let start = io::BufRead::fill_buf(&mut reader)?;
    Ok(if start.starts_with(&[0x1f, 0x8b]) {
        Box::new(flate2::read::MultiGzDecoder::new(reader))
    } else if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(zstd::stream::read::Decoder::with_buffer(reader)?)
    } else {
        Box::new(reader)
    })
}
