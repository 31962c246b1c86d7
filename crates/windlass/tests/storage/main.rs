//! Storage of backups keeps its contract: a folder, and a bucket of a real object storage; and what goes wrong there is told.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod contract;
mod server;

use std::io::{self, Read};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use contract::CHECKS;
use server::{BUCKET, KEY, KEY_ID, Server};
use windlass::backup::{
    Encrypted, Folder, KeyRing, Keys, Listing, ObjectStorage, Put, S3, S3Credentials, Storage, StorageError,
};

fn settings(endpoint: String) -> S3 {
    S3 {
        endpoint,
        bucket: BUCKET.into(),
        prefix: "of/a-team".into(),
        region: "us-east-1".into(),
        virtual_hosted: false,
        credentials: S3Credentials { secret_name: "key".into() },
        ca_certificate: None,
    }
}

fn bucket(server: &Server) -> ObjectStorage {
    let settings = settings(format!("http://{}", server.address));
    ObjectStorage::new(&settings, &Keys::new(KEY_ID, KEY)).unwrap()
}

fn keeps_the_contract(storage: &dyn Storage) {
    for (name, check) in CHECKS {
        println!("{name}");
        check(storage, name);
    }
}

/// What each call says; none of it may show a key.
fn errors(storage: &dyn Storage) -> Vec<StorageError> {
    let all = vec![
        storage.put("a", &mut "content".as_bytes()).unwrap_err(),
        storage.open("a").err().unwrap(),
        storage.list("a").unwrap_err(),
        storage.clear("a").unwrap_err(),
    ];
    for error in &all {
        let text = format!("{error} {error:?}");
        assert!(!text.contains(KEY) && !text.contains(KEY_ID) && !text.contains("wrong-"), "{text}");
        println!("{error}");
    }
    all
}

#[test]
fn a_folder_keeps_the_contract() {
    let top = tempfile::tempdir().unwrap();
    keeps_the_contract(&Folder::at(top.path()));
}

#[test]
fn a_bucket_keeps_the_contract() {
    let server = Server::start();
    keeps_the_contract(&bucket(&server));
    assert!(server.bucket().join("of/a-team/what-is-there-is-kept/a/b.gz").is_file(), "all is below the prefix");
}

/// Keys as a Secret has them.
fn keys(folder: &std::path::Path, entries: &[(&str, &str)]) -> KeyRing {
    for (name, digits) in entries {
        std::fs::write(folder.join(name), digits.repeat(32)).unwrap();
    }
    KeyRing::read(folder).ok().unwrap()
}

#[test]
fn encrypted_storage_keeps_the_contract_and_shows_nothing() {
    let (top, secret, server) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Server::start());
    let keys = keys(secret.path(), &[("2026-01-01", "a1")]);
    let in_folder = Encrypted::new(Box::new(Folder::at(top.path())), keys.clone());
    keeps_the_contract(&in_folder);
    keeps_the_contract(&Encrypted::new(Box::new(bucket(&server)), keys));
    for bucket in [top.path().to_owned(), server.bucket().join("of/a-team")] {
        let stored = std::fs::read(bucket.join("what-is-there-is-kept/a/b.gz")).unwrap();
        assert!(stored.starts_with(b"windlass") && !stored.windows(3).any(|bytes| bytes == b"one"));
    }
}

#[test]
fn encryption_can_begin_later_and_keys_can_change() {
    let (top, secret) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = || Box::new(Folder::at(top.path()));
    folder().put("a/plain", &mut "before".as_bytes()).unwrap();
    let first = Encrypted::new(folder(), keys(secret.path(), &[("2026-01-01", "a1")]));
    assert!(matches!(first.open("a/plain").err(), Some(StorageError::Plain(_))), "nobody knows whose it is");
    assert_eq!(first.put("a/plain", &mut "before".as_bytes()).unwrap(), Put::Identical);
    assert!(matches!(first.put("a/plain", &mut "after".as_bytes()), Err(StorageError::Different(_))));
    first.put("a/first", &mut "first".as_bytes()).unwrap();
    let both = Encrypted::new(folder(), keys(secret.path(), &[("2026-02-01", "b2")]));
    both.put("a/second", &mut "second".as_bytes()).unwrap();
    assert_eq!(both.put("a/first", &mut "first".as_bytes()).unwrap(), Put::Identical, "the old key still reads");
    std::fs::remove_file(secret.path().join("2026-01-01")).unwrap();
    let second = Encrypted::new(folder(), keys(secret.path(), &[]));
    assert!(matches!(second.open("a/first").err(), Some(StorageError::NoKey { .. })));
    assert_eq!(second.put("a/second", &mut "second".as_bytes()).unwrap(), Put::Identical, "the newest key wrote");
}

#[test]
fn wrong_credentials_are_told_and_not_shown() {
    let server = Server::start();
    let settings = settings(format!("http://{}", server.address));
    for keys in [Keys::new(KEY_ID, "wrong-secret"), Keys::new("wrong-id", KEY)] {
        for error in errors(&ObjectStorage::new(&settings, &keys).unwrap()) {
            assert!(matches!(error, StorageError::Denied { .. }), "{error}");
            assert!(error.to_string().contains("see that the Secret of the credentials is right"), "{error}");
        }
    }
}

#[test]
fn a_bucket_that_is_not_there_is_not_an_empty_one() {
    let server = Server::start();
    let settings = S3 { bucket: "absent".into(), ..settings(format!("http://{}", server.address)) };
    for error in errors(&ObjectStorage::new(&settings, &Keys::new(KEY_ID, KEY)).unwrap()) {
        assert!(matches!(error, StorageError::NoBucket { .. }), "{error}");
    }
}

#[test]
fn a_storage_that_is_away_is_told_of_in_time() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let storage = ObjectStorage::new(&settings(format!("http://{closed}")), &Keys::new(KEY_ID, KEY)).unwrap();
    let error = storage.put("a", &mut "content".as_bytes()).unwrap_err();
    assert!(matches!(&error, StorageError::Away { why, .. } if why.contains("refused")), "{error}");
}

#[test]
fn an_authority_of_ones_own_is_trusted_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.255.0.1".to_owned()]).unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let words = ["--cert", certificate.to_str().unwrap(), "--key", key.to_str().unwrap()];
    let server = Server::start_with(&words);
    let plain = settings(format!("https://{}", server.address));
    let keys = Keys::new(KEY_ID, KEY);
    let trusted = S3 { ca_certificate: Some(made.cert.pem()), ..plain.clone() };
    let storage = ObjectStorage::new(&trusted, &keys).unwrap();
    storage.put("a", &mut "content".as_bytes()).unwrap();
    let refused = ObjectStorage::new(&plain, &keys).unwrap().list("").unwrap_err();
    assert!(matches!(&refused, StorageError::Away { why, .. } if why.contains("certificate")), "{refused}");
    let unreadable = ObjectStorage::new(&S3 { ca_certificate: Some("none".into()), ..plain }, &keys).unwrap_err();
    assert!(matches!(&unreadable, StorageError::Settings(why) if why.contains("caCertificate")), "{unreadable}");
}

#[test]
fn who_dies_in_the_middle_of_an_upload_leaves_nothing_to_be_seen() {
    /// Says that the first part was asked for, and never goes on.
    struct Stuck(mpsc::Sender<()>, u64);
    impl Read for Stuck {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.1 > (64 << 20) {
                self.0.send(()).unwrap();
                loop {
                    thread::park();
                }
            }
            self.1 += buffer.len() as u64;
            Ok(buffer.len())
        }
    }
    let server = Server::start();
    let (storage, dying) = (bucket(&server), bucket(&server));
    let (tell, told) = mpsc::channel();
    thread::spawn(move || dying.put("long", &mut Stuck(tell, 0)));
    told.recv().unwrap();
    assert_eq!(storage.list("").unwrap(), Listing::default());
    assert!(storage.open("long").unwrap().is_none());
    storage.put("long", &mut "whole".as_bytes()).unwrap();
}
