//! From items to bytes: the byte budget, JSON, and text for people. Prints nothing itself.
