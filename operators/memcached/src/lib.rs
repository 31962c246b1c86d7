//! Keeps memcached clusters running.
