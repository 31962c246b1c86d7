//! What the crate does, seen from outside: tables of what is given and what is expected.

mod apply;
mod apply_others;
mod compare;
mod conversion;
mod entries;
mod fields;
mod json_patch;
mod merge;
mod merge_patch;
mod openapi;
mod remove;
mod story;
mod strategic;
mod strategic_lists;
mod thing;
mod update;
