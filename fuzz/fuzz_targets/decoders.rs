//! Runs the target that `WINDLASS_FUZZ_TARGET` names: one program, so that all of them are linked once.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use windlass_apiserver::fuzz;

static TARGET: LazyLock<String> = LazyLock::new(|| {
    std::env::var("WINDLASS_FUZZ_TARGET").expect("`cargo xtask fuzz` names the target in WINDLASS_FUZZ_TARGET")
});

fuzz_target!(|bytes: &[u8]| fuzz::run(&TARGET, bytes));
