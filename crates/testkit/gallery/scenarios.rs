//! What the users of the gallery do.

use serde_json::json;
use windlass::prelude::*;
use windlass_testkit::explore::User;

use super::table::Play;
use super::vaults::Vault;
use super::widget::Widget;

pub(crate) async fn play(play: Play, user: User) {
    match play {
        Play::Life => life(user).await,
        Play::Again => again(user).await,
        Play::Neighbours => neighbours(user).await,
        Play::Sizes => sizes(user).await,
        Play::Switch => switch(user).await,
        Play::Licence => licence(user).await,
        Play::Many => many(user).await,
        Play::Access => open_and_close(user).await,
        Play::Changes => unreachable!("a campaign plays by itself"),
    }
}

/// The Secret that vaults are opened with.
pub(crate) fn access() -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "access"},
           "stringData": {"password": "open sesame, quickly"}})
}

/// A vault is made, its password changes, and it goes.
async fn open_and_close(user: User) {
    user.create::<Secret>(access()).await;
    user.create::<Vault>(json!({"metadata": {"name": "v"}, "spec": {"secretName": "access"}})).await;
    user.settle().await;
    user.patch::<Vault>("v", json!({"spec": {"secretName": "missing"}})).await;
    user.settle().await;
    user.delete::<Vault>("v").await;
}

async fn create(user: &User, spec: serde_json::Value) {
    user.create::<Widget>(json!({"metadata": {"name": "w"}, "spec": spec})).await;
    user.settle().await;
}

async fn change(user: &User, spec: serde_json::Value) {
    user.patch::<Widget>("w", json!({"spec": spec})).await;
    user.settle().await;
}

/// Made, changed, deleted.
async fn life(user: User) {
    create(&user, json!({"size": 1, "text": "one", "options": {"a": "1", "b": "2"}})).await;
    change(&user, json!({"text": "two", "options": {"b": null}})).await;
    user.delete::<Widget>("w").await;
}

/// Made, deleted, and made again under the same name.
async fn again(user: User) {
    create(&user, json!({"size": 1, "text": "one"})).await;
    user.delete::<Widget>("w").await;
    user.settle().await;
    create(&user, json!({"size": 1, "text": "one"})).await;
}

/// Beside objects of the user's.
async fn neighbours(user: User) {
    let mine = json!({"metadata": {"name": "mine", "labels": {"part": "tls"}}, "data": {"a": "b"}});
    user.create::<ConfigMap>(mine).await;
    user.create::<ConfigMap>(json!({"metadata": {"name": "w"}, "data": {"text": "mine"}})).await;
    create(&user, json!({"size": 1, "text": "one"})).await;
    user.patch::<ConfigMap>("mine", json!({"data": {"a": "c"}})).await;
    user.create::<Widget>(json!({"metadata": {"name": "v"}, "spec": {"size": 1, "text": "two"}})).await;
}

/// Grows and shrinks.
async fn sizes(user: User) {
    create(&user, json!({"size": 1, "text": "one"})).await;
    change(&user, json!({"size": 2, "text": "two"})).await;
    change(&user, json!({"size": 1})).await;
    change(&user, json!({"size": 2})).await;
}

/// Many members, more, and few.
async fn many(user: User) {
    create(&user, json!({"size": 11, "text": "one", "tls": true})).await;
    change(&user, json!({"size": 14, "text": "two"})).await;
    change(&user, json!({"size": 3})).await;
    user.delete::<Widget>("w").await;
}

/// A feature on, off, and on.
async fn switch(user: User) {
    create(&user, json!({"size": 1, "text": "one"})).await;
    change(&user, json!({"tls": true})).await;
    change(&user, json!({"tls": false})).await;
    change(&user, json!({"tls": true})).await;
}

/// With a licence, and with a size that cannot be had for a while.
async fn licence(user: User) {
    user.create::<Secret>(json!({"metadata": {"name": "licence"}})).await;
    create(&user, json!({"size": 1, "text": "one"})).await;
    change(&user, json!({"size": 9})).await;
    change(&user, json!({"size": 2, "text": "two"})).await;
    user.delete::<Widget>("w").await;
}
