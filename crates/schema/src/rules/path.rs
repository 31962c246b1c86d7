//! Paths of files, as far as they may lead somewhere else.

use super::cursor::At;
use crate::FieldError;

/// No part of the path leads up.
pub(super) fn without_steps_back(at: &At<'_>, errors: &mut Vec<FieldError>) {
    if at.text().split('/').any(|part| part == "..") {
        errors.push(at.wrong_text("must not contain '..'"));
    }
}

/// The path leads down from where it is used.
pub(super) fn descending(at: &At<'_>, errors: &mut Vec<FieldError>) {
    if at.text().starts_with('/') {
        errors.push(at.wrong_text("must be a relative path"));
    }
    without_steps_back(at, errors);
}

/// The path leads down, and not to what begins as the files do that are replaced at once.
pub(super) fn unreserved(at: &At<'_>, errors: &mut Vec<FieldError>) {
    descending(at, errors);
    if at.text().starts_with("..") && !at.text().starts_with("../") {
        errors.push(at.wrong_text("must not start with '..'"));
    }
}
