//! Which replica has which shard: every replica comes to the same answer by itself.

use std::collections::{BTreeMap, BTreeSet};

/// The shards of each member. Every shard has one, no member has more than its share, and few move when members come or go.
pub(super) fn assign(members: &BTreeSet<String>, count: u32) -> BTreeMap<u32, String> {
    let Ok(members_count) = u32::try_from(members.len()) else { return BTreeMap::new() };
    if members_count == 0 {
        return BTreeMap::new();
    }
    let share = count.div_ceil(members_count);
    let mut load: BTreeMap<&String, u32> = members.iter().map(|member| (member, 0)).collect();
    let mut assigned = BTreeMap::new();
    for shard in 0..count {
        let has_room = load.iter().filter(|(_, taken)| **taken < share).map(|(member, _)| *member);
        let best = has_room.max_by_key(|member| (hash(&format!("{member}/{shard}")), *member)).cloned();
        if let Some(best) = best {
            *load.entry(members.get(&best).expect("it is one of them")).or_default() += 1;
            assigned.insert(shard, best);
        }
    }
    assigned
}

/// The shard of a key. All replicas must agree on it, those of another build included.
pub(super) fn shard_of(key: &str, count: u32) -> u32 {
    let shard = hash(key) % u64::from(count.max(1));
    u32::try_from(shard).expect("it is below a count of 32 bits")
}

/// FNV-1a with a last round of mixing: the same in every build.
fn hash(text: &str) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn every_shard_has_one_member_and_no_member_more_than_its_share() {
        for names in [&["a"][..], &["a", "b"], &["a", "b", "c"], &["a", "b", "c", "d", "e", "f", "g"]] {
            let assigned = assign(&members(names), 16);
            assert_eq!(assigned.len(), 16);
            for name in names {
                let has = assigned.values().filter(|member| member == name).count();
                assert!(has <= 16_usize.div_ceil(names.len()), "{name} of {names:?} has {has}");
            }
        }
        assert!(assign(&members(&[]), 16).is_empty());
    }

    #[test]
    fn a_member_that_comes_takes_little_more_than_its_share() {
        let (two, three) = (assign(&members(&["a", "b"]), 30), assign(&members(&["a", "b", "c"]), 30));
        let moved = (0..30).filter(|shard| two[shard] != three[shard]).count();
        assert!(moved <= 16, "{moved} of 30 moved");
    }

    #[test]
    fn keys_spread_over_the_shards() {
        let mut load = [0; 8];
        for index in 0..8000 {
            load[shard_of(&format!("default/object-{index}"), 8) as usize] += 1;
        }
        assert!(load.iter().all(|keys| (800..1200).contains(keys)), "{load:?}");
    }
}
