"""Side by side with peers, in one run, as ratios; accuracy beside speed."""
