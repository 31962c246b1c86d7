//! Small texts with a grammar of their own: quantities, names, addresses, tokens, policies.

use std::sync::LazyLock;

use windlass_schema::{names, quantity};
use windlass_store::Store;

use crate::{
    AddressRange,
    audit::Policy,
    auth::{Auth, ISSUER_DEFAULT, PublicKey, SigningKey, StaticTokens, TokenIssuer},
};

static AUTH: LazyLock<Auth> = LazyLock::new(|| {
    let key = SigningKey::generate().expect("the system has randomness");
    Auth::new(Store::in_memory()).with_issuer(TokenIssuer::new(ISSUER_DEFAULT, key, []))
});

/// One text, read as everything that it might be.
pub(super) fn texts(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    quantities(text);
    for check in [names::label, names::subdomain, names::label_1035, names::qualified, names::label_value] {
        let _ = check(text);
    }
    for check in [names::config_key, names::port_name, names::path_segment] {
        let _ = check(text);
    }
    if let Ok(range) = text.parse::<AddressRange>() {
        assert_eq!(range.to_string().parse::<AddressRange>().as_ref(), Ok(&range));
    }
    let _ = text.parse::<StaticTokens>();
    let _ = Policy::parse(text);
    let _ = PublicKey::all_from_pem(text);
    let _ = SigningKey::from_pem(text);
    assert!(AUTH.user_of_token(text, &[]).is_err(), "nobody signed this");
}

fn quantities(text: &str) {
    let Some(canonical) = quantity::canonical(text) else { return };
    assert_eq!(quantity::canonical(&canonical).as_deref(), Some(canonical.as_str()), "{text}");
    assert_eq!(quantity::nanos(&canonical), quantity::nanos(text), "{text}");
    let rounded = quantity::round_up_to_milli(text).expect("a quantity is one when it is rounded");
    assert!(quantity::nanos(&rounded) >= quantity::nanos(text), "{text} {rounded}");
}
