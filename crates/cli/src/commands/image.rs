//! `windlass image`: the store of images, which every embedded cluster of a user shares.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use windlass_node::image::{Build, Image, ImageError, ImageStore, PullPolicy, Removal};

use crate::failure::Failure;
use crate::view::columns::lay_out;
use crate::view::output::show;

/// How much of an image's identity the list shows; all of it is on the disk.
const ID_SHOWN: usize = 19;

#[derive(Subcommand)]
pub(crate) enum ImageCommand {
    /// Show the images that are there.
    Ls,
    /// Add an image, or replace the one of that name.
    Add {
        /// The name that Pods use, such as `mine:1.0`.
        name: String,
        /// A folder of files, an OCI layout, or an OCI or Docker archive; without it, the Debian package of that name.
        path: Option<PathBuf>,
    },
    /// Build an image from a Dockerfile, without root and without a container engine.
    Build {
        /// The name that Pods use, such as `mine:1.0`.
        name: String,
        /// The folder whose files can be copied.
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// The file with the instructions, if it is not `Dockerfile` or `Containerfile` in the folder.
        #[arg(long, short)]
        file: Option<PathBuf>,
        /// A value for an ARG instruction.
        #[arg(long = "build-arg", value_name = "NAME=VALUE", value_parser = pair)]
        arguments: Vec<(String, String)>,
    },
    /// Remove an image, and its files unless another name has the same.
    Rm {
        /// Its name, as `ls` shows it.
        name: String,
        /// Also if a Pod runs from it.
        #[arg(long)]
        force: bool,
    },
}

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

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "write NAME=VALUE".to_owned())
}
