//! A revisioned, watchable log of bytes: transactions, snapshots, compaction, on redb or in memory.
