//! Makes or adds an image: `cargo run -p windlass-node --example image -- STORE memcached:1.6 [PATH]`.

use std::path::{Path, PathBuf};

use windlass_node::image::{ImageStore, PullPolicy};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, name, rest @ ..] = arguments.as_slice() else { return Err("usage: image STORE NAME [PATH]".into()) };
    let store = ImageStore::new(PathBuf::from(store));
    let image = match rest.first() {
        Some(path) => store.add(name, Path::new(path)).await?,
        None => store.ensure(name, PullPolicy::IfNotPresent, &|step| println!("{step}")).await?,
    };
    println!("{image:#?}");
    Ok(())
}
