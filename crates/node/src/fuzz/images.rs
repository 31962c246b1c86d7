//! Images as a text tells what is in them: layers with paths and links of every kind.

use std::io::Write;

use serde_json::json;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use super::{ground::Ground, line};

/// Stands for the directory that has the store and what is outside of it.
const HERE: &str = "@";
/// The path and the text of one entry are this long at most; names of files are shorter anyway.
const TEXT_BYTES_MAX: usize = 8 << 10;
/// How many entries are made; the text of more of them is only longer.
const ENTRIES_MAX: usize = 400;

/// On the first line `oci` or `docker`, perhaps `gzip` or `zstd`, and how the image is run as JSON; then on each line an
/// entry: a letter for what it is, its mode, its path, and what it holds or where it leads. A line of `---` ends a layer.
pub(super) fn image(bytes: &[u8]) {
    let (first, rest) = line(bytes);
    let (Ok(first), Ok(rest)) = (std::str::from_utf8(first), std::str::from_utf8(rest)) else { return };
    let ground = Ground::new();
    let here = ground.path().to_string_lossy().into_owned();
    let layers: Vec<Vec<u8>> = rest.split("\n---\n").map(|text| packed(first, layer(text, &here))).collect();
    let config = first.find('{').map_or("{}", |start| &first[start..]).as_bytes().to_vec();
    let archive = if first.starts_with("docker") { docker(&layers, &config) } else { oci(&layers, &config) };
    ground.add(&packed(first, archive));
}

fn packed(first: &str, archive: Vec<u8>) -> Vec<u8> {
    if first.contains("gzip") {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&archive).and_then(|()| encoder.finish()).expect("memory can be written to")
    } else if first.contains("zstd") {
        zstd::encode_all(&archive[..], 1).expect("memory can be written to")
    } else {
        archive
    }
}

fn layer(text: &str, here: &str) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for entry in text.lines().take(ENTRIES_MAX) {
        let mut words = entry.splitn(4, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (kind, mode, path, content) = (next(), next(), next(), next());
        let [path, content] = [path, content].map(|text| text.replace(HERE, here));
        if path.len() + content.len() < TEXT_BYTES_MAX {
            append(&mut builder, kind, mode, &path, &content);
        }
    }
    builder.into_inner().expect("memory can be written to")
}

fn append(builder: &mut Builder<Vec<u8>>, kind: &str, mode: &str, path: &str, content: &str) {
    let (kind, is_link) = match kind {
        "d" => (EntryType::Directory, false),
        "l" => (EntryType::Symlink, true),
        "h" => (EntryType::Link, true),
        "b" => (EntryType::Block, false),
        "p" => (EntryType::Fifo, false),
        "c" => (EntryType::Continuous, false),
        _ => (EntryType::Regular, false),
    };
    // The builder refuses names that a reader must cope with, so long names are told as it would tell them.
    for (mark, text) in [(EntryType::GNULongName, path), (EntryType::GNULongLink, if is_link { content } else { "" })] {
        if !text.is_empty() {
            add(builder, header(mark, 0o644), &[text.as_bytes(), b"\0"].concat());
        }
    }
    let data = if is_link { "" } else { content };
    add(builder, header(kind, u32::from_str_radix(mode, 8).unwrap_or(0o755)), data.as_bytes());
}

fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header
}

fn add(builder: &mut Builder<Vec<u8>>, mut header: Header, data: &[u8]) {
    header.set_size(data.len() as u64);
    header.set_cksum();
    builder.append(&header, data).expect("memory can be written to");
}

fn archive(files: &[(String, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (path, content) in files {
        append_bytes(&mut builder, path, content);
    }
    builder.into_inner().expect("memory can be written to")
}

fn append_bytes(builder: &mut Builder<Vec<u8>>, path: &str, content: &[u8]) {
    let mut header = header(EntryType::Regular, 0o644);
    header.set_size(content.len() as u64);
    builder.append_data(&mut header, path, content).expect("the names of the parts are short");
}

fn docker(layers: &[Vec<u8>], config: &[u8]) -> Vec<u8> {
    let names: Vec<String> = (0..layers.len()).map(|index| format!("{index}/layer.tar")).collect();
    let manifest = json!([{"Config": "config.json", "Layers": names}]).to_string();
    let mut files = vec![("manifest.json".to_owned(), manifest.as_bytes()), ("config.json".to_owned(), config)];
    files.extend(names.into_iter().zip(layers.iter().map(Vec::as_slice)));
    archive(&files)
}

fn oci(layers: &[Vec<u8>], config: &[u8]) -> Vec<u8> {
    let digest = |bytes: &[u8]| hex::encode(Sha256::digest(bytes));
    let descriptor = |bytes: &[u8]| json!({"digest": format!("sha256:{}", digest(bytes)), "size": bytes.len()});
    let described: Vec<_> = layers.iter().map(|layer| descriptor(layer)).collect();
    let manifest = json!({"config": descriptor(config), "layers": described}).to_string();
    let index = json!({"manifests": [descriptor(manifest.as_bytes())]}).to_string();
    let mut files = vec![("index.json".to_owned(), index.as_bytes())];
    let blobs = layers.iter().map(Vec::as_slice).chain([manifest.as_bytes(), config]);
    files.extend(blobs.map(|blob| (format!("blobs/sha256/{}", digest(blob)), blob)));
    archive(&files)
}
