//! The keys of webhooks: what they become as time goes by.
//!
//! There is an authority that callers trust, and a certificate that it signed, which servers show. Both are renewed long
//! before their end. A new authority is trusted for a day before it signs what servers show, and the old one until its
//! end: at no moment does a caller meet a certificate that it does not trust yet, or no longer.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::ByteString;

use super::certificates::{Facts, Life, Pair, authority, belong_together, facts, serving};

const DAY_SECONDS: i64 = 24 * 60 * 60;
/// How long an authority holds.
const AUTHORITY_SECONDS: i64 = 365 * DAY_SECONDS;
/// How long before its end the next authority is made: what the old one signed until then ends before it does.
const AUTHORITY_RENEWAL_SECONDS: i64 = 120 * DAY_SECONDS;
/// How long an authority is known to callers before it signs what servers show.
const KNOWN_SECONDS: i64 = DAY_SECONDS;
/// How long the certificate of servers holds.
const SERVING_SECONDS: i64 = 90 * DAY_SECONDS;
/// How long before its end it is renewed.
const SERVING_RENEWAL_SECONDS: i64 = 30 * DAY_SECONDS;
/// Names that others wanted before are kept up to this number.
const NAMES_MAX: usize = 32;

/// What all replicas share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    authority: Pair,
    /// Known to callers, but not used yet.
    next: Option<Pair>,
    /// Certificates that no longer sign, but may have signed what is still shown.
    former: Vec<String>,
    serving: Pair,
}

impl Keys {
    /// New ones.
    fn new(names: &BTreeSet<String>, now: Timestamp) -> Result<Self, rcgen::Error> {
        let authority = authority(Life::of(now, AUTHORITY_SECONDS))?;
        let serving = serving(&authority, names, Life::of(now, SERVING_SECONDS))?;
        Ok(Self { authority, next: None, former: Vec::new(), serving })
    }

    /// What servers show.
    pub(super) fn serving(&self) -> &Pair {
        &self.serving
    }

    /// All authorities that callers trust, in PEM.
    pub(super) fn bundle(&self) -> String {
        let next = self.next.iter().map(|next| &next.certificate);
        let all = std::iter::once(&self.authority.certificate).chain(next).chain(&self.former);
        all.map(|pem| format!("{}\n", pem.trim_end())).collect()
    }

    /// As they are kept in a Secret.
    pub(super) fn write(&self) -> BTreeMap<String, ByteString> {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let mut data = BTreeMap::from([
            ("ca.crt".to_owned(), bytes(&self.authority.certificate)),
            ("ca.key".to_owned(), bytes(&self.authority.key)),
            ("tls.crt".to_owned(), bytes(&self.serving.certificate)),
            ("tls.key".to_owned(), bytes(&self.serving.key)),
        ]);
        if let Some(next) = &self.next {
            data.insert("next-ca.crt".into(), bytes(&next.certificate));
            data.insert("next-ca.key".into(), bytes(&next.key));
        }
        if !self.former.is_empty() {
            data.insert("former-ca.crt".into(), bytes(&self.former.concat()));
        }
        data
    }

    /// As a Secret has them; `None` if it has none, or not all.
    pub(super) fn read(data: &BTreeMap<String, ByteString>) -> Option<Self> {
        let text = |name: &str| String::from_utf8(data.get(name)?.0.clone()).ok();
        let pair = |certificate: &str, key: &str| {
            let pair = Pair { certificate: text(certificate)?, key: text(key)? };
            belong_together(&pair).then_some(pair)
        };
        let former = text("former-ca.crt").unwrap_or_default();
        Some(Self {
            authority: pair("ca.crt", "ca.key")?,
            next: pair("next-ca.crt", "next-ca.key"),
            former: former.split_inclusive("-----END CERTIFICATE-----\n").map(str::to_owned).collect(),
            serving: pair("tls.crt", "tls.key")?,
        })
    }

    /// What the keys should be `now`: the same, or renewed. A next authority is used only if callers have been told of
    /// it, which `is_known` says.
    pub(super) fn at(
        known: Option<&Self>,
        names: &BTreeSet<String>,
        now: Timestamp,
        is_known: bool,
    ) -> Result<Self, rcgen::Error> {
        let lasting =
            known.filter(|keys| facts(&keys.authority.certificate).is_some_and(|facts| lasts(&facts, now, 0)));
        let Some(keys) = lasting else { return Self::new(names, now) };
        let mut keys = keys.clone();
        keys.former.retain(|pem| facts(pem).is_some_and(|facts| lasts(&facts, now, 0)));
        keys.renew_authority(now, is_known)?;
        keys.renew_serving(names, now)?;
        Ok(keys)
    }

    fn renew_authority(&mut self, now: Timestamp, is_known: bool) -> Result<(), rcgen::Error> {
        let made = self.next.as_ref().and_then(|next| facts(&next.certificate)).map(|facts| facts.life.made());
        match made {
            Some(made) if is_known && now.as_second() - made >= KNOWN_SECONDS => {
                if let Some(next) = self.next.take() {
                    self.former.push(format!("{}\n", self.authority.certificate.trim_end()));
                    self.authority = next;
                }
            }
            Some(_) => {}
            None => {
                let ends = facts(&self.authority.certificate)
                    .is_none_or(|facts| !lasts(&facts, now, AUTHORITY_RENEWAL_SECONDS));
                if ends {
                    self.next = Some(authority(Life::of(now, AUTHORITY_SECONDS))?);
                }
            }
        }
        Ok(())
    }

    fn renew_serving(&mut self, names: &BTreeSet<String>, now: Timestamp) -> Result<(), rcgen::Error> {
        let (shown, authority) = (facts(&self.serving.certificate), facts(&self.authority.certificate));
        let issuer = authority.as_ref().map(|authority| authority.subject.as_str());
        let is_good = shown.as_ref().is_some_and(|shown| {
            lasts(shown, now, SERVING_RENEWAL_SECONDS)
                && shown.names.is_superset(names)
                && Some(shown.issuer.as_str()) == issuer
        });
        if is_good {
            return Ok(());
        }
        let mut all = names.clone();
        let others = shown.into_iter().flat_map(|shown| shown.names);
        all.extend(others.take(NAMES_MAX.saturating_sub(names.len())));
        let mut life = Life::of(now, SERVING_SECONDS);
        life.until = authority.map_or(life.until, |authority| life.until.min(authority.life.until));
        self.serving = serving(&self.authority, &all, life)?;
        Ok(())
    }
}

/// Whether a certificate holds, and does so for this many more seconds.
fn lasts(facts: &Facts, now: Timestamp, seconds: i64) -> bool {
    facts.life.from <= now.as_second() && facts.life.until - now.as_second() > seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_780_000_000;

    fn names(of: &[&str]) -> BTreeSet<String> {
        of.iter().map(|name| (*name).to_owned()).collect()
    }

    fn day(day: i64) -> Timestamp {
        Timestamp::from_second(START + day * DAY_SECONDS).unwrap()
    }

    fn is_trusted(keys: &Keys, bundle: &str) -> bool {
        let issuer = facts(&keys.serving.certificate).unwrap().issuer;
        let all = bundle.split_inclusive("-----END CERTIFICATE-----\n");
        all.filter_map(facts).any(|authority| authority.subject == issuer)
    }

    #[test]
    fn for_years_every_caller_trusts_every_server_though_both_lag_behind() {
        let wanted = names(&["x.y.svc", "127.0.0.1"]);
        let mut keys = Keys::at(None, &wanted, day(0), false).unwrap();
        let (mut authorities, mut certificates) = (BTreeSet::new(), BTreeSet::new());
        for today in 1..1200 {
            let before = keys.clone();
            keys = Keys::at(Some(&before), &wanted, day(today), true).unwrap();
            assert_eq!(Keys::read(&keys.write()).as_ref(), Some(&keys), "day {today}");
            let shown = facts(&keys.serving.certificate).unwrap();
            assert!(lasts(&shown, day(today), 29 * DAY_SECONDS), "day {today}: {shown:?}");
            assert!(is_trusted(&keys, &before.bundle()), "a caller that lags behind, day {today}");
            assert!(is_trusted(&before, &keys.bundle()), "a server that lags behind, day {today}");
            let bundle = keys.bundle();
            let all: Vec<_> = bundle.split_inclusive("-----END CERTIFICATE-----\n").collect();
            assert!(all.len() <= 3, "day {today}: {}", all.len());
            assert!(all.iter().all(|pem| lasts(&facts(pem).unwrap(), day(today), 0)), "day {today}");
            authorities.insert(keys.authority.certificate.clone());
            certificates.insert(keys.serving.certificate.clone());
        }
        assert_eq!(authorities.len(), 5, "a year less what is renewed ahead");
        assert!((20..=25).contains(&certificates.len()), "{}", certificates.len());
    }

    #[test]
    fn nothing_changes_without_need_and_damage_is_made_good() {
        let wanted = names(&["x.y.svc"]);
        let keys = Keys::at(None, &wanted, day(0), false).unwrap();
        assert_eq!(Keys::at(Some(&keys), &wanted, day(59), true).unwrap(), keys);
        assert_ne!(Keys::at(Some(&keys), &wanted, day(61), true).unwrap(), keys);

        let more = Keys::at(Some(&keys), &names(&["z"]), day(1), true).unwrap();
        assert_eq!(facts(&more.serving.certificate).unwrap().names, names(&["x.y.svc", "z"]));
        assert_eq!(more.authority, keys.authority);

        let mut data = keys.write();
        data.insert("tls.key".into(), data["ca.key"].clone());
        assert_eq!(Keys::read(&data), None, "a key of another certificate");
        data.clear();
        assert_eq!(Keys::read(&data), None);
        let late = Keys::at(Some(&keys), &wanted, day(400), true).unwrap();
        assert!(is_trusted(&late, &late.bundle()) && late.authority != keys.authority);
    }

    #[test]
    fn an_authority_that_callers_were_not_told_of_is_not_used() {
        let wanted = names(&["x.y.svc"]);
        let keys = Keys::at(None, &wanted, day(0), false).unwrap();
        let told = Keys::at(Some(&keys), &wanted, day(250), true).unwrap();
        assert!(told.next.is_some());
        assert_eq!(Keys::at(Some(&told), &wanted, day(252), false).unwrap().authority, keys.authority);
        assert_ne!(Keys::at(Some(&told), &wanted, day(252), true).unwrap().authority, keys.authority);
    }
}
