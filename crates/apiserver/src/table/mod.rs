//! Tables, as clients print them.
