//! Users and groups as the files of an image name them.

use std::fs;
use std::path::Path;

use crate::sandbox::{Identity, resolve};

/// Finds the user that `wanted` (`name`, `uid`, `user:group`) means in an image; none if it has no such user.
pub(crate) fn find_user(rootfs: &Path, wanted: &str) -> Option<Identity> {
    let passwd = read(rootfs, "/etc/passwd");
    let group = read(rootfs, "/etc/group");
    identity(&passwd, &group, wanted)
}

/// The supplementary groups of a user id.
pub(crate) fn find_groups(rootfs: &Path, uid: u32) -> Vec<u32> {
    let passwd = read(rootfs, "/etc/passwd");
    let user = passwd.lines().find(|line| field(line, 2) == Some(&uid.to_string()));
    user.and_then(|line| field(line, 0)).map(|name| groups_of(&read(rootfs, "/etc/group"), name)).unwrap_or_default()
}

fn read(rootfs: &Path, path: &str) -> String {
    let found = resolve(rootfs, Path::new(path)).map(|relative| rootfs.join(relative));
    found.and_then(fs::read_to_string).unwrap_or_default()
}

fn identity(passwd: &str, group: &str, wanted: &str) -> Option<Identity> {
    let (user, wanted_group) = wanted.split_once(':').map_or((wanted, None), |(user, group)| (user, Some(group)));
    let line = passwd.lines().find(|line| field(line, 0) == Some(user) || field(line, 2) == Some(user));
    let uid = match line {
        Some(line) => field(line, 2)?.parse().ok()?,
        None => user.parse().ok()?,
    };
    let own_group = line.and_then(|line| field(line, 3)?.parse().ok()).unwrap_or(0);
    let gid = match wanted_group {
        None => own_group,
        Some(wanted) => match group.lines().find(|line| field(line, 0) == Some(wanted)) {
            Some(line) => field(line, 2)?.parse().ok()?,
            None => wanted.parse().ok()?,
        },
    };
    let groups = line.and_then(|line| field(line, 0)).map(|name| groups_of(group, name)).unwrap_or_default();
    Some(Identity { uid, gid, groups })
}

fn groups_of(group: &str, user: &str) -> Vec<u32> {
    let member = |line: &&str| field(line, 3).is_some_and(|members| members.split(',').any(|name| name == user));
    group.lines().filter(member).filter_map(|line| field(line, 2)?.parse().ok()).collect()
}

fn field(line: &str, index: usize) -> Option<&str> {
    line.split(':').nth(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nmemcache:x:11211:11212::/:/bin/false\n";
        let group = "root:x:0:\nmemcache:x:11212:\nssl:x:50:memcache,other\n";
        let check = |wanted: &str, expect: Option<(u32, u32, &[u32])>| {
            let found = identity(passwd, group, wanted);
            assert_eq!(found.as_ref().map(|i| (i.uid, i.gid, i.groups.as_slice())), expect, "{wanted}");
        };
        check("memcache", Some((11211, 11212, &[50])));
        check("11211", Some((11211, 11212, &[50])));
        check("1000", Some((1000, 0, &[])));
        check("1000:ssl", Some((1000, 50, &[])));
        check("root:70", Some((0, 70, &[])));
        check("nobody-knows", None);
    }
}
