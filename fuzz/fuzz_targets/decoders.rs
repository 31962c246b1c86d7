//! Runs the target that `WINDLASS_FUZZ_TARGET` names: one program, so that all of them are linked once.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("WINDLASS_FUZZ_TARGET").expect("`cargo xtask fuzz` names the target in WINDLASS_FUZZ_TARGET");
    let mut targets = windlass_apiserver::fuzz::TARGETS.into_iter().chain(windlass_node::fuzz::TARGETS);
    targets.find(|(known, _)| *known == name).expect("the target exists").1
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
