"""The rewriting itself: what statements bind and change, and the code they become."""
