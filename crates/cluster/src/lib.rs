//! Store, API server, controllers and node put together.
