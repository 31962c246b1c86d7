//! Packages that are installed on this machine: where images come from when no mirror can be reached.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Package {
    version: String,
    /// Alternatives of each dependency.
    needs: Vec<Vec<String>>,
}

/// The packages of this machine.
#[derive(Debug, Default)]
pub(crate) struct Installed {
    packages: BTreeMap<String, Package>,
    /// What satisfies a dependency on a name that is no package.
    providers: BTreeMap<String, String>,
}

impl Installed {
    /// Asks dpkg; a machine without it has no packages.
    pub(crate) fn read() -> Self {
        let format = "${Package}\t${Version}\t${db:Status-Status}\t${Provides}\t${Pre-Depends}, ${Depends}\n";
        let listed = Command::new("dpkg-query").args(["-W", "-f", format]).output();
        listed.map(|listed| Self::parse(&String::from_utf8_lossy(&listed.stdout))).unwrap_or_default()
    }

    fn parse(text: &str) -> Self {
        let mut installed = Self::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [name, version, "installed", provides, needs] = fields.as_slice() else { continue };
            for provided in names(provides) {
                installed.providers.insert(provided, (*name).to_owned());
            }
            let needs = needs.split(',').map(|need| need.split('|').filter_map(name_of).collect::<Vec<_>>());
            let needs = needs.filter(|alternatives| !alternatives.is_empty()).collect();
            installed.packages.insert((*name).to_owned(), Package { version: (*version).to_owned(), needs });
        }
        installed
    }

    /// The version of a package, if it is installed.
    pub(crate) fn version(&self, package: &str) -> Option<&str> {
        self.packages.get(package).map(|package| package.version.as_str())
    }

    /// The packages with everything that they need, except what is assumed.
    pub(crate) fn closure(&self, wanted: &[&str], assumed: &[&str]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut pending: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
        while let Some(name) = pending.pop() {
            let Some(package) = self.packages.get(&name) else { continue };
            if !found.insert(name) {
                continue;
            }
            for alternatives in &package.needs {
                let real = |name: &String| {
                    let provider = self.providers.get(name);
                    self.packages.contains_key(name).then_some(name).or(provider).cloned()
                };
                let chosen = alternatives.iter().find_map(real);
                pending.extend(chosen.filter(|name| !assumed.contains(&name.as_str())));
            }
        }
        found
    }
}

/// Copies the files of installed packages; those that this user may not read are left out.
pub(crate) fn copy(packages: &BTreeSet<String>, rootfs: &Path) -> io::Result<()> {
    let listed = Command::new("dpkg-query").arg("-L").args(packages).output()?;
    for path in String::from_utf8_lossy(&listed.stdout).lines().filter(|line| line.starts_with('/')) {
        let place = rootfs.join(crate::sandbox::resolve(rootfs, Path::new(path))?);
        match copy_one(Path::new(path), &place) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            other => other?,
        }
    }
    Ok(())
}

fn copy_one(source: &Path, place: &Path) -> io::Result<()> {
    // A file that a package once had and a person removed is no reason to fail.
    let Ok(found) = fs::symlink_metadata(source) else { return Ok(()) };
    if place.symlink_metadata().is_ok() {
        return Ok(());
    }
    fs::create_dir_all(place.parent().unwrap_or(Path::new("/")))?;
    if found.is_dir() {
        fs::create_dir(place)
    } else if found.is_symlink() {
        let target: PathBuf = fs::read_link(source)?;
        symlink(target, place)
    } else if found.is_file() {
        fs::copy(source, place).map(drop)
    } else {
        Ok(())
    }
}

fn names(list: &str) -> Vec<String> {
    list.split(',').filter_map(name_of).collect()
}

/// `libc6` of ` libc6:any (>= 2.34)`.
fn name_of(text: &str) -> Option<String> {
    let name = text.split(['(', '[', '<']).next()?.trim();
    let name = name.split(':').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "a\t1.2-1\tinstalled\t\tb (>= 1), x | c:any, \n\
                        b\t2\tinstalled\tvirtual (= 1)\td, passwd\n\
                        c\t3\tinstalled\t\tvirtual\n\
                        d\t4\tnot-installed\t\t\n\
                        passwd\t5\tinstalled\t\te\n\
                        e\t6\tinstalled\t\t\n";

    #[test]
    fn the_closure_is_what_is_installed_and_needed() {
        let installed = Installed::parse(LIST);
        assert_eq!(installed.version("a"), Some("1.2-1"));
        assert_eq!(installed.version("d"), None);
        let names: Vec<String> = installed.closure(&["a"], &["passwd"]).into_iter().collect();
        assert_eq!(names, ["a", "b", "c"]);
    }
}
