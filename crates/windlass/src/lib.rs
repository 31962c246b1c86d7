//! What operator authors depend on.
