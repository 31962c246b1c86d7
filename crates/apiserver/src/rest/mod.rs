//! The verbs, for every kind alike.
