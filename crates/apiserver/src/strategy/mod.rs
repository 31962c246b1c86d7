//! What kinds do beyond the common path.
