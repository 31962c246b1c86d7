//! The operators of {{name}}.

use windlass::Crew;

/// All operators, in one program: `windlass create api` adds a module above and a line here.
pub fn program() -> Crew {
    windlass::program("{{name}}")
}
