//! `windlass image`: the store of images, which every embedded cluster of a user shares.

use std::path::Path;

use windlass_node::image::{Build, Image, ImageError, ImageStore, PullPolicy, Removal};

use crate::arguments::ImageCommand;
use crate::failure::Failure;
use crate::view::columns::lay_out;
use crate::view::output::show;

/// How much of an image's identity the list shows; all of it is on the disk.
const ID_SHOWN: usize = 19;

/// Runs the command.
pub(crate) async fn run(command: &ImageCommand) -> Result<(), Failure> {
    let store = ImageStore::new(windlass_cluster::images_default());
    match command {
        ImageCommand::Ls => list(&store),
        ImageCommand::Add { name, path } => {
            let image = add(&store, name, path.as_deref()).await.map_err(|error| Failure::new(error.to_string()))?;
            show!("image {name} is there: {}\n", image.id);
            Ok(())
        }
        ImageCommand::Build { name, folder, file, arguments } => {
            let (context, file) = (folder.clone(), file.clone());
            let build = Build { name: name.clone(), context, file, arguments: arguments.iter().cloned().collect() };
            let built = store.build(&build, &|step| eprintln!("{step}")).await;
            let image = built.map_err(|error| Failure::new(error.to_string()))?;
            show!("image {name} is there: {}\n", image.id);
            Ok(())
        }
        ImageCommand::Rm { name, force } => {
            let removal = store.remove(name, *force).await.map_err(|error| Failure::new(error.to_string()))?;
            match removal {
                Removal::Freed => show!("image {name} and its files are gone\n"),
                Removal::Shared => show!("image {name} is gone; another name has the same files\n"),
            }
            Ok(())
        }
    }
}

async fn add(store: &ImageStore, name: &str, path: Option<&Path>) -> Result<Image, ImageError> {
    match path {
        Some(path) => store.add(name, path).await,
        None => store.ensure(name, PullPolicy::Always, &|step| eprintln!("{step}")).await,
    }
}

fn list(store: &ImageStore) -> Result<(), Failure> {
    let mut rows = vec![["NAME", "ID", "FROM"].map(str::to_owned).to_vec()];
    for image in store.list() {
        rows.push(vec![image.name, image.id.chars().take(ID_SHOWN).collect(), image.source]);
    }
    if rows.len() == 1 {
        eprintln!("no images in {} yet: Pods make them on first use", store.directory().display());
        return Ok(());
    }
    show!("{}", lay_out(&rows));
    Ok(())
}
