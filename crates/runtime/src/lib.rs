//! Informers, queue, workers, tap, leader election, probes, metrics.
