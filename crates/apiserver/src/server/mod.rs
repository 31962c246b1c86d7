//! Listening: TLS, HTTP/1.1 and HTTP/2, and calls within the process.
